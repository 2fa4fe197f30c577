/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: all batches are decoded into one profile in memory, which is encoded once: so it has each
 * text, function and stack only once.
 */
#include "cli/cli.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/arena.h"
#include "cli/options/options.h"
#include "codec/codec.h"
#include "os/os.h"
#include "otlp/otlp.h"
#include "parca/parca.h"
#include "pprof/pprof.h"

#define PROFILE_BYTES_MAX ((size_t)1 << 30) /* for texts, and as many for tables */
#define OFFLINE_BYTES_MAX ((size_t)1 << 30) /* of a decompressed file of parca-agent */
#define OFFLINE_BATCH_BYTES_MAX ((size_t)256 << 20)
#define LISTING_BYTES_MAX ((size_t)16 << 20)
#define ZSTD_MAGIC "\x28\xb5\x2f\xfd"
#define USUAL_TYPE "parca_agent:samples:count:cpu:nanoseconds:delta"
#define GZIP_LEVEL 6

struct convert_flags {
	const char *output, *format, *type;
};

/* clang-format off */
static const struct cli_option options[] = {
	{ .name = "output", .kind = CLI_TEXT, .letter = 'o',
	  .at = offsetof(struct convert_flags, output), .value = "FILE",
	  .help = "Where to write. Required." },
	{ .name = "format", .kind = CLI_CHOICE, .at = offsetof(struct convert_flags, format),
	  .value = "FORMAT", .choices = "pprof otlp", .otherwise = "pprof",
	  .help = "pprof: a profile.proto with gzip, for go tool pprof; otlp: an "
		  "ExportProfilesServiceRequest, for whatever takes OTLP profiles." },
	{ .name = "type", .kind = CLI_TEXT, .at = offsetof(struct convert_flags, type),
	  .value = "TYPE",
	  .help = "pprof: the profile type to write, as name:sample_type:sample_unit:period_type:"
		  "period_unit[:delta]. Default: " USUAL_TYPE ", or the only one there is." },
};
/* clang-format on */

static const struct cli_command command = {
	.name = "convert",
	.summary = "firn convert: make one profile of what an agent kept while it had no server.",
	.args = "PATH...",
	.args_least = 1,
	.args_most = 4096,
	.text = "PATH is a directory of --offline-mode-storage-path or --spool-path, or one of its "
		"files (*.batch); or one of parca-agent's offline mode (*.padata, *.padata.zst). "
		"They stay as they are. Functions of the kernel have their names; "
		"others get theirs from whoever has the executables: go tool pprof looks for them "
		"by build id in PPROF_BINARY_PATH.\n"
		"\n"
		"  firn agent --offline-mode-storage-path /tmp/kept\n"
		"  firn convert /tmp/kept -o kept.pb.gz\n"
		"  go tool pprof -top kept.pb.gz",
	.groups = { { "Flags", options, ARRAY_COUNT(options), 0 } },
	.group_count = 1,
};

struct conversion {
	struct convert_flags flags;
	struct profile profile;
	uint32_t batches, damaged;
	int64_t rejected;
	struct parca_arrow_stats stats;
};

/* ---- reading ---- */

static void complain_about(
	struct conversion *v, const char *path, enum status s, const struct err *e)
{
	v->damaged++;
	cli_complain("%s: %s", path, err_text(e, s));
}

static enum status take_own(struct conversion *v, const char *path, struct err *e)
{
	CLEANUP(buf_deinit) struct buf message;
	struct otlp_rejects rejects = { 0 };
	buf_init(&message, AGENT_BATCH_BYTES_MAX + 1);
	enum status s = agent_read_batch(path, &message, e);
	if (s == OK)
		s = otlp_decode(buf_view(&message), &v->profile, &rejects, e);
	v->rejected += rejects.profiles;
	v->batches += s == OK;
	return s;
}

/* parca-agent compresses a file when it begins the next one. */
static enum status take_offline(
	struct conversion *v, const char *path, bool compressed, struct err *e)
{
	CLEANUP(buf_deinit) struct buf file;
	CLEANUP(buf_deinit) struct buf plain;
	struct parca_offline_sum sum = { 0 };
	buf_init(&file, OFFLINE_BYTES_MAX);
	buf_init(&plain, OFFLINE_BYTES_MAX);
	enum status s = os_read_file(path, &file, e);
	if (s == OK && compressed)
		s = codec_zstd_decompress(file.data, file.len, &plain, e);
	if (s == OK)
		s = parca_offline_decode(buf_view(compressed ? &plain : &file),
			OFFLINE_BATCH_BYTES_MAX, &v->profile, &v->stats, &sum, e);
	v->batches += sum.batches;
	if (sum.rest_bytes)
		cli_complain("%s: %zu bytes behind its %u batches are left out: parca-agent did "
			     "not finish them",
			path, sum.rest_bytes, sum.told);
	return s;
}

static bool is_kept(struct str name)
{
	return str_ends(name, STR(".batch")) || str_ends(name, STR(".padata")) ||
	       str_ends(name, STR(".padata.zst"));
}

/* Decodes a file; complains if it is bad. E_LIMIT, E_NOMEM: no further file can be decoded
 * either. */
static enum status take_file(struct conversion *v, const char *path)
{
	struct err e = { 0 };
	uint8_t begin[4] = { 0 };
	CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? pread(fd, begin, sizeof(begin), 0) : 0;
	bool compressed = n == sizeof(begin) && memcmp(begin, ZSTD_MAGIC, sizeof(begin)) == 0;
	enum status s = compressed || (n > 0 && parca_is_offline(str_make(begin, (size_t)n)))
				? take_offline(v, path, compressed, &e)
				: take_own(v, path, &e);
	if (s == OK)
		return OK;
	if (s == E_CORRUPT && !is_kept(str_of(path)))
		s = err_set(&e, s, "this is no file that an agent kept (*.batch, *.padata)");
	complain_about(v, path, s, &e);
	return s == E_LIMIT || s == E_NOMEM ? s : OK;
}

static enum status take_dir(struct conversion *v, const char *dir)
{
	CLEANUP(arena_deinit) struct arena a;
	struct str *names = NULL;
	size_t count = 0;
	struct err e = { 0 };
	arena_init(&a, LISTING_BYTES_MAX);
	enum status s = os_list_dir(dir, &a, &names, &count, &e);
	if (s != OK)
		complain_about(v, dir, s, &e);
	for (size_t i = 0; s == OK && i < count; i++) {
		if (!is_kept(names[i]))
			continue;
		char *path = arena_printf(&a, "%s/%.*s", dir, STR_ARG(names[i]));
		s = path ? take_file(v, path) : E_NOMEM;
	}
	return s == E_LIMIT || s == E_NOMEM ? s : OK;
}

static enum status take(struct conversion *v, const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? take_dir(v, path) : take_file(v, path);
}

/* ---- one type ---- */

static uint32_t type_of(const struct profile *p, const struct profile_sample *s)
{
	return p->heads.v[s->head].type;
}

static bool type_is(const struct profile *p, uint32_t type, const char *name)
{
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, 4096);
	profile_type_write(&text, p, &p->types.v[type]);
	return str_eq(buf_view(&text), str_of(name));
}

/* Lists all types but one. Where `but` is 0, types without samples are listed too. */
static void list_types(const struct profile *p, uint32_t but)
{
	for (uint32_t t = 1; t < p->types.len; t++) {
		CLEANUP(buf_deinit) struct buf text;
		size_t count = 0;
		buf_init(&text, 4096);
		for (size_t i = 0; i < p->samples.len; i++)
			count += type_of(p, &p->samples.v[i]) == t;
		if (t == but || (but && !count))
			continue;
		profile_type_write(&text, p, &p->types.v[t]);
		cli_complain("  --type %.*s (%zu samples)", STR_ARG(buf_view(&text)), count);
	}
}

/* A user who named no type may not know that there are others. */
static void say_what_is_left_out(const struct conversion *v, uint32_t type)
{
	const struct profile *p = &v->profile;
	size_t others = 0;
	for (size_t i = 0; i < p->samples.len; i++)
		others += type_of(p, &p->samples.v[i]) != type;
	if (!others || v->flags.type)
		return;
	cli_complain("%zu samples of other types are left out; a file has one type (or all, with "
		     "--format otlp):",
		others);
	list_types(p, type);
}

/* Keeps the samples of one type only; false: the choice was not clear, and an error was printed. */
static bool choose_type(struct conversion *v)
{
	struct profile *p = &v->profile;
	const char *wanted = v->flags.type ? v->flags.type : USUAL_TYPE;
	uint32_t type = 0, kept = 0;
	for (uint32_t t = 1; t < p->types.len && !type; t++)
		type = type_is(p, t, wanted) ? t : 0;
	if (!type && !v->flags.type && p->types.len == 2)
		type = 1;
	if (!type && p->samples.len) {
		cli_complain("there is no %s, but:", wanted);
		list_types(p, 0);
		return false;
	}
	say_what_is_left_out(v, type);
	for (size_t i = 0; i < p->samples.len; i++)
		if (type_of(p, &p->samples.v[i]) == type)
			p->samples.v[kept++] = p->samples.v[i];
	p->samples.len = kept;
	return true;
}

/* ---- writing ---- */

static enum status encode(const struct conversion *v, struct buf *out, struct err *e)
{
	if (strcmp(v->flags.format, "otlp") == 0)
		return otlp_encode(&v->profile, out);
	CLEANUP(buf_deinit) struct buf plain;
	buf_init(&plain, PROFILE_BYTES_MAX);
	enum status s = pprof_encode(&v->profile, &plain, e);
	return s == OK ? codec_gzip(plain.data, plain.len, GZIP_LEVEL, out) : s;
}

static int write_out(struct conversion *v)
{
	CLEANUP(buf_deinit) struct buf out;
	struct err e = { 0 };
	buf_init(&out, PROFILE_BYTES_MAX);
	bool is_pprof = strcmp(v->flags.format, "pprof") == 0;
	if (is_pprof && !choose_type(v))
		return CLI_USAGE;
	if (!v->profile.samples.len) {
		if (!v->damaged)
			cli_complain("there are no samples in %u batch%s", v->batches,
				v->batches == 1 ? "" : "es");
		return CLI_FAILED;
	}
	enum status s = encode(v, &out, &e);
	if (s == OK)
		s = os_replace_file(v->flags.output, out.data, out.len, 0644, &e);
	if (s != OK) {
		cli_complain("%s: %s", v->flags.output, err_text(&e, s));
		return CLI_FAILED;
	}
	printf("%s: %zu sample%s of %u batch%s\n", v->flags.output, v->profile.samples.len,
		v->profile.samples.len == 1 ? "" : "s", v->batches, v->batches == 1 ? "" : "es");
	if (v->rejected)
		cli_complain("%lld profiles could not be kept", (long long)v->rejected);
	if (v->stats.no_stack)
		cli_complain("%llu samples have no stack: parca-agent had forgotten it",
			(unsigned long long)v->stats.no_stack);
	return v->damaged || v->rejected ? CLI_FAILED : CLI_OK;
}

int cli_convert(int argc, char **argv)
{
	struct conversion v = { 0 };
	int at = 0, code = CLI_OK;
	if (!cli_parse(&command, argc, argv, &v.flags, &at, &code))
		return code;
	for (int i = at; i < argc; i++)
		if (access(argv[i], R_OK) < 0) {
			cli_complain("%s: %m", argv[i]);
			return CLI_FAILED;
		}
	if (!v.flags.output || !v.flags.output[0]) {
		cli_complain("where to? -o FILE: firn convert %s -o kept.pb.gz", argv[at]);
		return CLI_USAGE;
	}
	enum status s = profile_init(&v.profile, PROFILE_BYTES_MAX);
	for (int i = at; s == OK && i < argc; i++)
		s = take(&v, argv[i]);
	if (s == OK)
		code = write_out(&v);
	else
		cli_complain("too much for one profile (%s): convert fewer files at a time",
			status_text(s));
	profile_deinit(&v.profile);
	return s == OK ? code : CLI_FAILED;
}
