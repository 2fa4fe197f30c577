// SPDX-License-Identifier: Apache-2.0
// What runs on the made host: processes, the beginnings of their stacks, and how they go on.
const NATIVE = 1;
export const KERNEL = 2;
const PYTHON = 3;
const MARKER = 15;

const frame = (name, binary, kind = NATIVE, file = "", line = 0, inlined = 0) => ({
	name,
	binary,
	kind,
	file,
	line,
	inlined,
});

/** Stands at the end of a stack that could not be walked to its start. */
export const markerFrame = () => frame("[truncated: no unwind rows]", "", MARKER);

const k = (name) => frame(name, "[kernel]", KERNEL);
const SYSCALL = [k("entry_SYSCALL_64_after_hwframe"), k("do_syscall_64")];
/** Ways into the kernel by a system call. */
export const KERNEL_PATHS = [
	"__x64_sys_read ksys_read vfs_read ext4_file_read_iter filemap_read copy_page_to_iter",
	"__x64_sys_write ksys_write vfs_write ext4_buffered_write_iter generic_perform_write copy_user_generic_unrolled",
	"__x64_sys_openat do_sys_openat2 do_filp_open path_openat link_path_walk.part.0.constprop.0 __d_lookup_rcu",
	"__x64_sys_futex do_futex futex_wait futex_wait_queue schedule __schedule finish_task_switch.isra.0",
	"__x64_sys_mmap vm_mmap_pgoff do_mmap mmap_region vma_merge",
	"__x64_sys_sendto __sys_sendto tcp_sendmsg tcp_sendmsg_locked tcp_push __tcp_transmit_skb ip_queue_xmit",
	"__x64_sys_execve do_execveat_common.isra.0 bprm_execve load_elf_binary begin_new_exec mmput exit_mmap unmap_vmas",
].map((path) => [...SYSCALL, ...path.split(" ").map(k)]);
/** The way into the kernel by a page fault. */
export const FAULT = [
	"asm_exc_page_fault",
	"exc_page_fault",
	"do_user_addr_fault",
	"handle_mm_fault",
	"__handle_mm_fault",
	"do_anonymous_page",
	"clear_page_erms",
].map(k);

const PY = "python3.11";
const CC = "cc1plus";
const PG = "postgres";
const NODE = "node";
const py = (name, file, line) => frame(name, file, PYTHON, `/srv/app/${file}`, line);

/** Processes: weight (cores), stacks begin with `base`, go on through `steps`. */
export const PROCESSES = [
	{
		labels: { comm: "python3", executable: "/usr/bin/python3.11", container_id: "9f2c4e7a1b03" },
		cores: 0.9,
		base: [
			frame("_start", PY),
			frame("__libc_start_main_impl", "libc.so.6"),
			frame("Py_BytesMain", PY),
			frame("Py_RunMain", PY),
			frame("_PyEval_EvalFrameDefault", PY, NATIVE, "Python/ceval.c", 5352),
			py("<module>", "serve.py", 210),
			py("main", "serve.py", 188),
			py("handle_request", "handlers.py", 77),
		],
		steps: [
			["render_template", "json_dumps", "encode_basestring", "list_append"].map((n, i) =>
				py(n, "render.py", 20 + i * 31),
			),
			["query", "fetchall", "decode_row", "_cast_value"].map((n, i) => py(n, "db.py", 61 + i * 17)),
			[
				"PyObject_Vectorcall",
				"_PyFunction_Vectorcall",
				"dict_merge",
				"insertdict",
				"dictresize",
			].map((n) => frame(n, PY, NATIVE, "Objects/dictobject.c", 1180)),
			["PyDict_GetItem", "unicode_hash", "siphash13"].map((n) =>
				frame(n, PY, NATIVE, "Python/pyhash.c", 401, 1),
			),
			["_PyObject_Malloc", "malloc", "_int_malloc", "sysmalloc"].map((n, i) =>
				frame(n, i ? "libc.so.6" : PY),
			),
			["SSL_read", "ssl3_read_bytes", "tls_decrypt", "aesni_gcm_decrypt"].map((n) =>
				frame(n, "libcrypto.so.3"),
			),
		],
	},
	{
		labels: { comm: "cc1plus", executable: "/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus" },
		cores: 1.3,
		base: [
			"_start",
			"__libc_start_main_impl",
			"main",
			"toplev::main(int, char**)",
			"compile_file()",
			"c_parse_file()",
		].map((n, i) => frame(n, i === 1 ? "libc.so.6" : CC)),
		steps: [
			[
				"cp_parser_declaration(cp_parser*, tree_node*)",
				"cp_parser_template_declaration_after_parameters(cp_parser*, tree_node*, bool)",
				"instantiate_class_template(tree_node*)",
				"tsubst(tree_node*, tree_node*, int, tree_node*)",
				"tsubst_decl(tree_node*, tree_node*, int)",
			].map((n, i) => frame(n, CC, NATIVE, "gcc/cp/pt.cc", 9000 + i * 431)),
			[
				"finalize_compilation_unit()",
				"expand_all_functions()",
				"cgraph_node::expand()",
				"execute_pass_list(function*, opt_pass*)",
				"execute_one_pass(opt_pass*)",
			].map((n, i) => frame(n, CC, NATIVE, "gcc/passes.cc", 2600 + i * 12)),
			[
				"(anonymous namespace)::pass_pre::execute(function*)",
				"compute_antic()",
				"bitmap_ior_into(bitmap_head*, bitmap_head const*)",
				"std::vector<std::pair<int, basic_block_def*>, std::allocator<std::pair<int, basic_block_def*> > >::_M_realloc_insert(std::pair<int, basic_block_def*>&&)",
			].map((n, i) => frame(n, CC, NATIVE, "gcc/tree-ssa-pre.cc", 2210 + i * 77, i > 1 ? 1 : 0)),
			[
				"ggc_internal_alloc(unsigned long, void (*)(void*), unsigned long, unsigned long)",
				"gt_ggc_mx_lang_tree_node(void*)",
				"memset",
			].map((n, i) => frame(n, i === 2 ? "libc.so.6" : CC)),
			["lra(_IO_FILE*)", "lra_assign(bool&)", "find_hard_regno_for_1(int, int*, int, bool)"].map(
				(n) => frame(n, CC),
			),
		],
	},
	{
		labels: {
			comm: "postgres",
			executable: "/usr/lib/postgresql/15/bin/postgres",
			container_id: "4410aa5be9d1",
		},
		cores: 0.55,
		base: [
			"_start",
			"__libc_start_main_impl",
			"main",
			"PostmasterMain",
			"ServerLoop",
			"BackendStartup",
			"PostgresMain",
			"exec_simple_query",
			"PortalRun",
		].map((n, i) =>
			frame(
				n,
				i === 1 ? "libc.so.6" : PG,
				NATIVE,
				i > 2 ? "src/backend/tcop/postgres.c" : "",
				i > 2 ? 1000 + i * 9 : 0,
			),
		),
		steps: [
			["ExecutorRun", "ExecAgg", "ExecHashJoin", "ExecHashTableInsert", "tts_minimal_copyslot"].map(
				(n) => frame(n, PG),
			),
			["ExecSeqScan", "heap_getnextslot", "heapgetpage", "HeapTupleSatisfiesMVCC"].map((n) =>
				frame(n, PG),
			),
			["pg_plan_query", "standard_planner", "make_one_rel", "add_path"].map((n) => frame(n, PG)),
			["hash_search_with_hash_value", "hash_bytes", "memcmp"].map((n, i) =>
				frame(n, i === 2 ? "libc.so.6" : PG),
			),
			[
				"llvm_compile_expr",
				"llvm::orc::LLJIT::lookup(llvm::StringRef)",
				"llvm::SelectionDAGISel::runOnMachineFunction(llvm::MachineFunction&)",
			].map((n) => frame(n, "libLLVM-14.so.1")),
		],
	},
	{
		labels: { comm: "node", executable: "/usr/bin/node", container_id: "77de01c2f8aa" },
		cores: 0.35,
		base: [
			"_start",
			"__libc_start_main_impl",
			"node::Start(int, char**)",
			"node::SpinEventLoop(node::Environment*)",
			"uv_run",
			"uv__io_poll",
		].map((n, i) => frame(n, i === 1 ? "libc.so.6" : NODE)),
		steps: [
			[
				"node::InternalCallbackScope::Close()",
				"v8::Function::Call(v8::Local<v8::Context>, v8::Local<v8::Value>, int, v8::Local<v8::Value>*)",
				"Builtins_JSEntry",
				"onStreamRead",
				"parserOnBody",
			].map((n, i) =>
				frame(n, NODE, i > 2 ? 5 : NATIVE, i > 2 ? "node:internal/http" : "", i > 2 ? 120 : 0),
			),
			[
				"v8::internal::Heap::CollectGarbage(v8::internal::AllocationSpace, v8::internal::GarbageCollectionReason)",
				"v8::internal::MarkCompactCollector::MarkLiveObjects()",
				"v8::internal::MarkingVisitorBase<>::VisitPointers()",
			].map((n) => frame(n, NODE)),
			["JSON.stringify", "Builtins_KeyedLoadIC", "Builtins_StringAdd"].map((n) =>
				frame(n, NODE, 5),
			),
		],
	},
	{
		labels: { comm: "nginx", executable: "/usr/sbin/nginx" },
		cores: 0.2,
		base: [
			"_start",
			"main",
			"ngx_worker_process_cycle",
			"ngx_process_events_and_timers",
			"ngx_epoll_process_events",
		].map((n) => frame(n, "nginx")),
		steps: [
			["ngx_http_process_request_line", "ngx_http_core_run_phases", "ngx_http_proxy_handler"].map(
				(n) => frame(n, "nginx"),
			),
			["deflate", "deflate_slow", "longest_match"].map((n) => frame(n, "libz.so.1.2.13")),
			["nginx+0x4c21f", "nginx+0x4d800"].map((n) => frame(n, "nginx")),
		],
	},
	...[
		"sshd",
		"systemd-journal",
		"dockerd",
		"containerd",
		"chronyd",
		"irqbalance",
		"cron",
		"rsyslogd",
		"firn",
	].map((comm, i) => ({
		labels: { comm, executable: `/usr/sbin/${comm}` },
		cores: 0.06 / (i + 1),
		base: ["_start", "__libc_start_main_impl", "main"].map((n, j) =>
			frame(n, j === 1 ? "libc.so.6" : comm),
		),
		steps: [
			["event_loop", "dispatch", "read_message"].map((n) => frame(n, comm)),
			["epoll_wait"].map((n) => frame(n, "libc.so.6")),
		],
	})),
	{
		labels: { comm: "swapper/0", executable: "" },
		cores: 0.12,
		base: [k("secondary_startup_64_no_verify"), k("cpu_startup_entry"), k("do_idle")],
		steps: [
			[k("cpuidle_enter"), k("cpuidle_enter_state"), k("acpi_idle_enter")],
			[
				k("__irq_exit_rcu"),
				k("__do_softirq"),
				k("net_rx_action"),
				frame("virtnet_poll", "virtio_net", KERNEL),
			],
		],
	},
];

PROCESSES.forEach((process, i) => {
	Object.assign(process.labels, {
		node: "debian-12",
		pid: String(900 + i * 137),
		cpu: String(i % 4),
	});
});
