// SPDX-License-Identifier: Apache-2.0
// What /metrics has.

/** The figures of a server that takes 38 samples a second. */
export function metrics(firstMs) {
	const samples = 38 * Math.round((Date.now() - firstMs) / 1000);
	return [
		"# TYPE firn_store_samples_total counter",
		`firn_store_samples_total ${samples}`,
		`firn_store_log_bytes_total ${samples * 120}`,
		"firn_store_parts 4",
		"firn_store_part_bytes 733578",
		"firn_store_part_rows 41044",
		"firn_store_memtable_bytes 1584309",
		"process_resident_memory_bytes 58806272",
		`firn_agent_samples_taken_total ${samples}`,
		"firn_agent_cpus 2",
		"firn_agent_unwind_table_bytes 26445616",
		"firn_agent_bpf_nanoseconds_total 1150716663",
		'firn_agent_samples_lost_total{reason="ring"} 12',
		'firn_agent_samples_lost_total{reason="busy"} 0',
		'firn_ingest_refused_samples_total{reason="old"} 3',
		"",
	].join("\n");
}
