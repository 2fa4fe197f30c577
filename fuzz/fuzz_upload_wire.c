/* SPDX-License-Identifier: Apache-2.0 */
/* Properties: what is not taken leaves the answer as it was and says why; an address that is taken
 * apart has a host, no byte that would end a line of HTTP, and is the same again when it was put
 * together again. */
#include "fuzz/fuzz.h"
#include "fuzz/mutate_pb.h"

#include "upload/wire.h"

#include <stdio.h>
#include <string.h>

FUZZ_MUTATES_PB(0)

static void check_text(const char *text)
{
	for (const char *p = text; *p; p++)
		FUZZ_CHECK(*p > ' ' && *p <= '~');
}

static void check_url(const char *url, bool clear_text)
{
	static struct upload_url parsed, again;
	static char whole[sizeof(parsed.server) + sizeof(parsed.target)];
	struct err e = { 0 };
	if (upload_url_parse(url, clear_text, &parsed, &e) != OK) {
		FUZZ_CHECK(e.text[0]);
		return;
	}
	check_text(parsed.server);
	check_text(parsed.target);
	FUZZ_CHECK(strlen(parsed.server) > strlen("http://:80") && parsed.target[0] == '/');
	FUZZ_CHECK(clear_text || strncmp(parsed.server, "https://", 8) == 0);
	snprintf(whole, sizeof(whole), "%s%s", parsed.server, parsed.target);
	FUZZ_CHECK(upload_url_parse(whole, clear_text, &again, &e) == OK);
	FUZZ_CHECK(strcmp(parsed.server, again.server) == 0);
	FUZZ_CHECK(strcmp(parsed.target, again.target) == 0);
}

static void check_ticket(struct str message)
{
	static struct upload_ticket ticket;
	struct err e = { 0 };
	ticket = (struct upload_ticket){ .id = "before" };
	if (upload_ticket_decode(message, &ticket, &e) != OK) {
		FUZZ_CHECK(e.text[0] && strcmp(ticket.id, "before") == 0 && !ticket.url[0]);
		return;
	}
	FUZZ_CHECK(ticket.id[0] && strlen(ticket.id) <= DEBUGINFO_ID_MAX);
	if (ticket.url[0]) {
		check_url(ticket.url, false);
		check_url(ticket.url, true);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct upload_answer answer;
	struct str message = str_make(data, size);
	struct err e = { 0 };
	answer = (struct upload_answer){ .wanted = true, .in_progress = true, .reason = "before" };
	if (upload_answer_decode(message, &answer, &e) != OK)
		FUZZ_CHECK(e.text[0] && answer.wanted && strcmp(answer.reason, "before") == 0);
	else
		FUZZ_CHECK(!(answer.wanted && answer.in_progress));
	check_ticket(message);
	return 0;
}
