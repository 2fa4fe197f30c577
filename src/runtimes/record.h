/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * record: what the BPF program knows of one build of a language runtime, found in its ELF file.
 * Shared with the BPF program: plain integers, native byte order. It stands beside the file's
 * unwind rows, and holds for every process that has the file mapped.
 *
 * Offsets are bytes, of 64-bit builds.
 */
#pragma once

#include <linux/types.h>

/* Numbers are in events; never reused. */
enum runtime_kind {
	RUNTIME_NONE = 0,
	RUNTIME_CPYTHON = 1,
	RUNTIME_KIND_COUNT,
};

/* How CPython keeps the frames of a thread. A run is what one native frame of the interpreter's
 * loop executes: Python functions that call each other without leaving the loop. */
enum cpython_frames {
	CPYTHON_OBJECTS = 1, /* to 3.10: each native frame of the loop executes one PyFrameObject */
	CPYTHON_ENTRIES =
		2, /* 3.11: the loop has a _PyCFrame on its stack; is_entry ends the run */
	CPYTHON_CFRAMES = 3, /* 3.12: the same; a frame whose owner is the loop itself ends it */
	CPYTHON_OWNED = 4,   /* 3.13 on: that frame itself lies on the loop's stack */
};

/* Bytes that are read of each structure; all offsets in it lie below. */
#define CPYTHON_THREAD_BYTES 192
#define CPYTHON_FRAME_BYTES 88
#define CPYTHON_FRAME_OBJECT_BYTES 112
#define CPYTHON_CODE_BYTES 144

/* A table of lines is read up to here: one of this length may be cut. Even. */
#define CPYTHON_LINES_BYTES_MAX 4096

struct cpython_layout {
	__u32 loop[4]; /* file offsets, CPYTHON_OBJECTS only: the loop from, to; its cold part */
	__u16 frames;  /* enum cpython_frames */
	__u16 runtime_head;    /* _PyRuntimeState.interpreters.head */
	__u16 runtime_current; /* .gilstate.tstate_current; 0: there is none (3.12) */
	__u16 interp_threads;  /* PyInterpreterState.threads.head */
	__u16 interp_next;
	__u16 interp_gil; /* .ceval.gil, a pointer; 0: there is none (to 3.11) */
	__u16 gil_holder; /* in what it points to: the thread that held it last */
	__u16 thread_next;
	__u16 thread_id;    /* pthread_self(): the thread pointer, with glibc and musl */
	__u16 thread_frame; /* the frame, or the _PyCFrame (3.11, 3.12) */
	__u16 cframe_frame;
	__u16 cframe_previous;
	__u16 frame_code;
	__u16 frame_previous;
	__u16 frame_instr;     /* the instruction's address; its index to 3.10 (s32) */
	__u16 frame_owner;     /* u8; is_entry in 3.11 */
	__u16 owner_loop;      /* from this value of it on the frame is the loop's own */
	__u16 code_first_line; /* u32 */
	__u16 code_file;
	__u16 code_name;
	__u16 code_lines;   /* the table of lines, a bytes object */
	__u16 code_instr;   /* the first instruction, from 3.11 on */
	__u16 text_ascii;   /* sizeof(PyASCIIObject): where characters begin */
	__u16 text_compact; /* the same of texts that are not ASCII */
	__u16 instr_unit;   /* bytes of one of frame_instr's units: 1, or 2 (3.10) */
	__u16 pad;
};

#define RUNTIME_LAYOUT_WORDS 14

struct runtime_record {
	__u16 kind;    /* enum runtime_kind */
	__u16 version; /* major << 8 | minor */
	__u32 pad;
	/* The segment of code that has the interpreter, by file offset. */
	__u32 text_from;
	__u32 text_bytes;
	/* The runtime's root variable is at (address of a byte of this segment) - (its file offset)
	 * + delta, in every process: segments keep their distance. */
	__u64 delta;
	union {
		struct cpython_layout cpython;
		__u64 words[RUNTIME_LAYOUT_WORDS];
	} layout;
};
