/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * record: what the BPF program knows about one build of a language runtime, as found in its ELF
 * file. Shared with the BPF program: plain integers, native byte order. It is kept with the file's
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
	RUNTIME_HOTSPOT = 2,
	RUNTIME_PHP = 3,
	RUNTIME_PERL = 4,
	RUNTIME_V8 = 5,
	RUNTIME_RUBY = 6,
	RUNTIME_GO = 7,
	RUNTIME_LUA = 8,
	RUNTIME_LUAJIT = 9,
	RUNTIME_BEAM = 10,
	RUNTIME_DOTNET = 11,
	RUNTIME_KIND_COUNT,
};

/* How many bytes each character of a text has: 1, 2, 4 (Latin-1, UCS-2, UCS-4), or this. */
#define RUNTIME_TEXT_UTF8 8

/* What kind of code a function without a name is, or how the name of its owner is put before its
 * own.
 */
enum runtime_form {
	RUNTIME_FORM_NAMED = 0,
	RUNTIME_FORM_MAIN = 1,    /* the program's outermost code */
	RUNTIME_FORM_FILE = 2,    /* the outermost code of another file that it loads */
	RUNTIME_FORM_EVAL = 3,    /* the outermost code of a text that the program evaluates */
	RUNTIME_FORM_CLASS = 4,   /* a method of a class, not of its objects (Ruby) */
	RUNTIME_FORM_SOURCE = 5,  /* no function: a piece of the source of several (V8) */
	RUNTIME_FORM_CODE = 6,    /* no function: machine code made of several (V8) */
	RUNTIME_FORM_CONTEXT = 7, /* no function: a thread's trace and span */
	RUNTIME_FORM_COUNT,
};

/* How CPython keeps the frames of a thread. A run is what one native frame of the interpreter's
 * loop executes: Python functions that call each other without leaving the loop. */
enum cpython_frames {
	CPYTHON_OBJECTS = 1, /* to 3.10: each native frame of the loop executes one PyFrameObject */
	/* 3.11: the loop has a _PyCFrame on its stack; is_entry ends the run. */
	CPYTHON_ENTRIES = 2,
	CPYTHON_CFRAMES = 3, /* 3.12: the same; a frame whose owner is the loop itself ends it */
	CPYTHON_OWNED = 4,   /* 3.13 on: that frame itself lies on the loop's stack */
};

/* Bytes that are read of each structure; all offsets in it are smaller. */
#define CPYTHON_THREAD_BYTES 192
#define CPYTHON_FRAME_BYTES 88
#define CPYTHON_FRAME_OBJECT_BYTES 112
#define CPYTHON_CODE_BYTES 144
/* The head with which every object begins. In builds without a global lock it is larger, and so are
 * all offsets in a code object. */
#define CPYTHON_HEAD_BYTES 16
#define CPYTHON_HEAD_FREE_BYTES 32
#define CPYTHON_CODE_FREE_BYTES 160

/* At most this much of a table of lines is read, so a table of this length may be cut. Even. */
#define CPYTHON_LINES_BYTES_MAX 4096

struct cpython_layout {
	__u32 loop[4];         /* file offsets: the loop from, to; its cold part */
	__u16 frames;          /* enum cpython_frames */
	__u16 runtime_head;    /* _PyRuntimeState.interpreters.head */
	__u16 runtime_current; /* .gilstate.tstate_current; 0: there is none (3.12) */
	__u16 interp_threads;  /* PyInterpreterState.threads.head */
	__u16 interp_next;
	__u16 interp_gil; /* .ceval.gil, a pointer; 0: there is none (to 3.11) */
	__u16 gil_holder; /* in the GIL: the thread that held it last */
	__u16 thread_next;
	__u16 thread_id;    /* pthread_self(): the thread pointer, with glibc and musl */
	__u16 thread_frame; /* the frame, or the _PyCFrame (3.11, 3.12) */
	__u16 cframe_frame;
	__u16 cframe_previous;
	__u16 frame_code;
	__u16 frame_previous;
	__u16 frame_instr;     /* the instruction's address; its index to 3.10 (s32) */
	__u16 frame_owner;     /* u8; is_entry in 3.11 */
	__u16 owner_loop;      /* if frame_owner is at least this, the frame is the loop's own */
	__u16 code_first_line; /* u32 */
	__u16 code_file;
	__u16 code_name;
	__u16 code_lines;   /* the table of lines, a bytes object */
	__u16 code_instr;   /* the first instruction, from 3.11 on */
	__u16 text_ascii;   /* sizeof(PyASCIIObject): where characters begin */
	__u16 text_compact; /* the same of texts that are not ASCII */
	__u16 instr_unit;   /* bytes of one of frame_instr's units: 1, or 2 (3.10) */
	__u16 object_head;  /* CPYTHON_HEAD_BYTES, or CPYTHON_HEAD_FREE_BYTES */
	__u16 text_shift;   /* where a text's kind is in its state; 0: at bit 2 */
	/* Builds without a global lock, from 3.14 on: which copy of the instructions a frame
	 * executes (u32), and the code's array of copies, behind its length; 0: there is only one
	 * copy. */
	__u16 frame_copy;
	__u16 code_copies;
};

/* How a build of HotSpot differs from others. */
enum hotspot_flags {
	HOTSPOT_ONE_HEAP = 1,         /* the root is CodeCache._heap (8), else ._heaps */
	HOTSPOT_CODE_POINTER = 2,     /* blob_code holds an address (9 to 22), else an offset */
	HOTSPOT_DEOPT_POINTER = 4,    /* so does nmethod_deopt */
	HOTSPOT_SCOPES_POINTER = 8,   /* and nmethod_scopes */
	HOTSPOT_IMMUTABLE = 16,       /* pcs and scopes lie where nmethod_immutable says (23) */
	HOTSPOT_MUTABLE = 32,         /* metadata follow the relocations in blob_mutable (25) */
	HOTSPOT_METADATA_SHORT = 64,  /* nmethod_metadata is a u16, from blob_data on (23, 24) */
	HOTSPOT_COMPLETE_SHORT = 128, /* blob_complete is an s16 (23) */
	HOTSPOT_NO_ZEROS = 256,       /* compressed numbers have no bytes of zero (19) */
	HOTSPOT_OLD_FRAMES = 512,     /* an interpreter's frame has one word less (8) */
};

/* Bytes that are read of each structure; all offsets in it lie below. */
#define HOTSPOT_NMETHOD_BYTES 384
#define HOTSPOT_BLOB_BYTES 128
#define HOTSPOT_CONST_METHOD_BYTES 64
#define HOTSPOT_POOL_BYTES 96

/* At most this much of a table of lines is read. */
#define HOTSPOT_LINES_BYTES_MAX CPYTHON_LINES_BYTES_MAX

struct hotspot_layout {
	__s32 interpreter;      /* AbstractInterpreter._code, from the root on */
	__s32 call_stub_return; /* StubRoutines._call_stub_return_address, likewise */
	__s32 entry;            /* ContinuationEntry._return_pc, likewise; 0: not known (to 21) */
	__u16 flags;            /* enum hotspot_flags */
	__u16 array_length, array_data;  /* of _heaps: the count, the elements */
	__u16 heap_low, heap_high;       /* of a CodeHeap: bounds of its memory */
	__u16 heap_segments;             /* where its map of segments begins */
	__u16 heap_shift;                /* log2 of a segment's bytes */
	__u16 block_bytes;               /* bytes before each blob */
	__u16 queue_buffer, queue_bytes; /* of a StubQueue: where the interpreter is */
	/* CodeBlob and nmethod */
	__u16 blob_name, blob_bytes, blob_code, blob_data, blob_frame_words, blob_complete;
	__u16 blob_mutable, blob_relocation_bytes;
	__u16 nmethod_method, nmethod_deopt, nmethod_original_pc, nmethod_compile_id;
	__u16 nmethod_scopes, nmethod_pcs, nmethod_pcs_end, nmethod_metadata, nmethod_immutable;
	/* Method and what it leads to */
	__u16 method_const;
	__u16 const_pool, const_words, const_code_bytes, const_name, const_size, const_flags;
	__u16 pool_class, pool_file, pool_size; /* pool_file 0: the class has it */
	__u16 class_name, class_file;
	__u16 symbol_length, symbol_text;
};

/* Bytes that are read of a zend_op_array; all offsets in it are smaller. */
#define PHP_FUNCTION_BYTES 184

/* Where PHP keeps executor_globals: of the process, or of each thread. */
enum php_root {
	PHP_ROOT_PROGRAM = 0, /* the root variable is it */
	/* One for each thread, in a build with threads (ZTS). The root variable says how far it is
	 * behind the thread's cache of variables. The address of that cache is, from the thread
	 * pointer on, at: */
	PHP_ROOT_FIXED = 1, /* thread_at bytes */
	/* The offset in the word that is thread_at bytes from the root variable. */
	PHP_ROOT_OFFSET = 2,
};

struct php_layout {
	__u32 loop[4];        /* file offsets: execute_ex from, to; its cold part */
	__u32 resume[2];      /* the same of zend_generator_resume */
	__u16 globals_frame;  /* zend_executor_globals.current_execute_data */
	__u16 function_count; /* zend_op_array.last: u32, how many instructions it has */
	__u16 function_code;  /* .opcodes */
	__u16 function_file;  /* .filename */
	__u16 function_line;  /* .line_start: u32 */
	__u16 root;           /* enum php_root */
	__s32 thread_at;
};

struct perl_layout {
	__u32 loop[4];      /* file offsets: Perl_runops_standard from, to */
	__u32 sort[2];      /* the same of Perl_pp_sort */
	__u16 interp_stack; /* PerlInterpreter.Icurstackinfo */
	__u16 interp_cop;   /* .Icurcop */
	__u16 has_body_aux; /* struct xpvhv_aux follows the XPVHV, not the array */
	__u16 stack_type;   /* PERL_SI.si_type */
	__u16 context_bytes;
	__u16 context_cv; /* the CV of a subroutine; that of an eval is two words further */
	/* How many bytes below the thread pointer a thread's interpreter is; 0: not known, and the
	 * root variable has the interpreter of the first thread. */
	__u16 thread_at;
};

/* Bytes that are read of each object; all offsets in it are smaller. */
#define V8_FUNCTION_BYTES 56
#define V8_SHARED_BYTES 64
#define V8_SCRIPT_BYTES 72
#define V8_SCOPE_BYTES 64
#define V8_CODE_BYTES 72
#define V8_DEOPT_BYTES 96
/* How many types of functions there are, from the first one on. */
#define V8_FUNCTION_TYPES 24

struct v8_layout {
	__u32 builtins[2]; /* file offsets: V8's own code from, to */
	__u32 entry[2];    /* the same of the code that begins a function in the interpreter */
	__u32 handlers[2]; /* the same of the code that executes its instructions */
	/* Where a thread's Isolate, which has the table of codes, is from the thread pointer on; 0:
	 * the root variable leads to it. */
	__s32 isolate_at;
	__s16 frame_bytecodes; /* from the frame pointer on; the offset lies below it */
	__u16 function_shared; /* JSFunction's SharedFunctionInfo */
	__u16 shared_name;     /* of a SharedFunctionInfo: a String or ScopeInfo */
	__u16 shared_script;
	__u16 shared_flags; /* u32; behind it the function's number in its script */
	__u16 script_name;  /* behind it the line it begins at */
	__u16 script_source;
	__u16 script_id;
	__u16 scope_locals;    /* of a ScopeInfo: how many variables it names */
	__u16 scope_variables; /* where these begin */
	__u16 scope_positions; /* place of the function in the source; 0: behind its names */
	__u16 bytecodes_data;  /* of a BytecodeArray: where its instructions begin */
	__u16 bytecodes_lines; /* its table of places in the source */
	__u16 first_no_string; /* types below it are strings */
	__u16 type_function;   /* the first one */
	__u16 type_shared, type_script, type_scope, type_bytecodes, type_code;
	/* Of code that V8 has made. */
	__u16 function_code;     /* JSFunction's Code; 0: by the table of codes */
	__u16 function_feedback; /* its FeedbackCell */
	__u16 code_deopt;        /* of a Code: DeoptimizationData */
	__u16 code_table;        /* its table of places */
	__u16 code_start;        /* where its instructions are */
	__u16 code_is_inline;    /* 1: they follow it, from code_start on */
	__u16 code_bytes;        /* u32, how many */
	__u16 deopt_literals;    /* of DeoptimizationData: functions that were put into it */
	__u16 deopt_inlining;    /* and where */
	__u16 dispatch; /* of the Isolate, or of what the root variable points to: the table of
			   codes */
};

/* What the BPF program sends about a function, before its table of places. The words are as in
 * memory. */
#define V8_SLOTS 7
struct v8_told {
	__u64 source;          /* the number of its script's first piece; 0: not known */
	__u64 first_line;      /* of the script in its file */
	__u64 positions[2];    /* where it begins and ends in the source; 0: see the slots */
	__u64 slots[V8_SLOTS]; /* of its ScopeInfo, behind the names of variables */
	__u64 table_bytes;     /* of its table, which may be cut */
};
/* What the BPF program sends about machine code made of a function: this struct, a number for each
 * function that was inlined (V8_INLINED_MAX words), where they were inlined (struct
 * InliningPosition of V8), and the table of places.
 */
#define V8_INLINED_MAX 32
#define V8_INLINING_BYTES_MAX 1024
struct v8_code_told {
	__u64 function;
	__u32 functions;
	__u32 inlining_bytes;
	__u64 table_bytes; /* of the table, which may be cut */
};
/* The source of a script is sent in pieces of V8_PIECE_BYTES, each with a number; at most
 * V8_PIECES_MAX of them. */
#define V8_PIECE_BYTES 4096
#define V8_PIECES_MAX 1024

/* How a thread's execution context (rb_execution_context_t) is found. */
enum ruby_root {
	RUBY_ROOT_POINTER = 1, /* to 2.7: the root variable points to the running thread's */
	RUBY_ROOT_MODULE = 2,  /* thread-local in a library: the root is the pair of words in the
				  global offset table that names the module and the offset */
	RUBY_ROOT_OFFSET = 3,  /* the root is one word there: the offset from the thread pointer */
	RUBY_ROOT_FIXED = 4, /* thread-local in a program: at root_at from the thread pointer on */
};

/* How the name of a class is kept. */
enum ruby_class {
	RUBY_CLASS_NONE = 0,  /* it cannot be reached (3.2) */
	RUBY_CLASS_TABLE = 1, /* to 3.1: in the table of variables of its extension */
	RUBY_CLASS_FIELD = 2, /* from 3.3 on: in the object */
};

/* Bytes that are read of an instruction sequence's body; all offsets in it are smaller. */
#define RUBY_BODY_BYTES 184

struct ruby_layout {
	__u32 loop[4];    /* file offsets: vm_exec from, to; its cold part */
	__u32 core[2];    /* the same of vm_exec_core, which it calls; both 0: it is in vm_exec */
	__s32 root_at;    /* RUBY_ROOT_FIXED */
	__s32 symbols_at; /* the list of names, from the root variable on; 0: it was not found */
	__u16 root;       /* enum ruby_root */
	__u16 is_musl;    /* the C library's vector of modules has one word for each module */
	__u16 context_thread; /* rb_execution_context_t.thread_ptr, where it is checked; else 0 */
	__u16 thread_id;      /* of an rb_thread_t: pthread_self() */
	__u16 frame_bytes;    /* sizeof(rb_control_frame_t) */
	__u16 body_lines;     /* rb_iseq_constant_body.insns_info */
	__u16 line_bytes;     /* of an entry of it */
	__u16 line_is_value;  /* location.first_lineno is a VALUE, else an int */
	__u16 text_data;      /* RString: where the bytes begin, if the string holds them itself */
	__u16 last_operator;  /* tLAST_OP_ID: IDs to here are their own numbers */
	__u16 class_kind;     /* enum ruby_class */
	__u16 class_name;     /* RUBY_CLASS_FIELD: where the name is */
	__u16 class_attached; /* the object that a singleton class belongs to */
	__u16 singleton_flag; /* bit of a class' flags: it is a singleton */
};

struct go_layout {
	__s32 g_at;     /* the variable g, from the thread pointer on; 0: it was not found */
	__u16 m_curg;   /* m.curg */
	__u16 g_labels; /* g.labels */
	__u16 is_slice; /* labels are a slice, else a map (to 1.23) */
	__u16 pad;
};

/* Where OpenTelemetry's thread-local variable is, which points to the thread's context. */
enum thread_context_form {
	THREAD_CONTEXT_NONE = 0,
	THREAD_CONTEXT_FIXED = 1,  /* `at` bytes from the thread pointer */
	THREAD_CONTEXT_OFFSET = 2, /* the word at `at` says how far from it */
	/* The pair at `at` says which library's variables, and how far in them. */
	THREAD_CONTEXT_PAIR = 3,
	/* The second word of the pair at `at` says how far, or where such a pair is. */
	THREAD_CONTEXT_DESCRIPTOR = 4,
};
/* The context: 16 bytes of trace id, 8 of span id, 1 if it is valid, flags, and bytes that are not
 * read. */
#define THREAD_CONTEXT_BYTES 28
#define THREAD_CONTEXT_IS_VALID 1

/* A label of a goroutine, as the BPF program sends it: each text is cut at its limit. */
#define RUNTIME_LABELS_MAX 10
struct runtime_label {
	__u16 key_bytes;
	__u16 value_bytes;
	__u32 pad;
	__u8 key[32];
	__u8 value[88];
};

/* Bytes that are read of each structure; all offsets in it lie below. */
#define LUA_FRAME_BYTES 72
#define LUA_PROTO_BYTES 128

struct lua_layout {
	__u32 loop[4];          /* file offsets: luaV_execute from, to; its cold part */
	__u16 thread_frame;     /* lua_State.ci */
	__u16 thread_base;      /* .base_ci: the outermost frame; to 5.1 its address */
	__u16 thread_pc;        /* to 5.1: .savedpc, of the innermost frame; else 0 */
	__u16 thread_stack;     /* .stack, behind .stack_last */
	__u16 thread_status;    /* u8 */
	__u16 thread_protected; /* .errorJmp */
	__u16 thread_global;    /* .l_G */
	__u16 global_main; /* global_State.mainthread: its address; from 5.5 on the thread itself */
	__u16 frame_bytes; /* sizeof(CallInfo), which to 5.1 are in an array */
	__u16 frame_previous; /* from 5.2 on */
	__u16 frame_function; /* CallInfo.func: where the function's value is */
	__u16 frame_pc;       /* .savedpc: the instruction that is next */
	__u16 frame_status;   /* from 5.2 on: bits of .callstatus, u8 */
	__u8 status_last[2];  /* mask, value: the last Lua frame that a native frame runs */
	__u16 function_proto; /* LClosure.p */
	__u16 proto_source;   /* a TString */
	__u16 proto_first_line;
	__u16 proto_code;
	__u16 proto_code_count;
	__u16 proto_lines; /* a u32 each; from 5.4 on an s8, how many lines from the one before */
	__u16 proto_lines_count;
	__u16 proto_marks; /* from 5.4 on: pairs of an instruction and its line; else 0 */
	__u16 proto_marks_count;
	__u16 text_length; /* from 5.5 on: TString.shrlen, s8; below 0: the text is elsewhere */
	__u16 holds_main;  /* from 5.5 on: the main thread is a part of global_State */
};

struct luajit_layout {
	__u32 vm[2]; /* file offsets: the interpreter (assembly) from, to */
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
		struct hotspot_layout hotspot;
		struct php_layout php;
		struct perl_layout perl;
		struct v8_layout v8;
		struct ruby_layout ruby;
		struct go_layout go;
		struct lua_layout lua;
		struct luajit_layout luajit;
		__u64 words[RUNTIME_LAYOUT_WORDS];
	} layout;
};
