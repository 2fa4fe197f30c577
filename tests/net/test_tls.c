/* SPDX-License-Identifier: Apache-2.0 */
/* TLS against OpenSSL's client, with certificates made here. */
#include "test.h"

#include "net/state.h"
#include "os/os.h"

#include "certificate.h"
#include "peer.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <stdio.h>

#define MINUTE (60 * NS_PER_SEC)

static struct net_server_config tls_config(void)
{
	struct net_server_config c = peer_config();
	c.tls_cert_file = cert_path;
	c.tls_key_file = key_path;
	return c;
}

struct tls_client {
	SSL_CTX *ctx;
	SSL *ssl;
	int fd;
};

/* True: the handshake was made. `alpn` NULL: none. */
static bool client_open(
	struct tls_client *c, const struct net_server *s, const char *alpn, bool with_cert)
{
	c->ctx = SSL_CTX_new(TLS_client_method());
	CHECK(SSL_CTX_load_verify_locations(c->ctx, cert_path, NULL) == 1);
	SSL_CTX_set_verify(c->ctx, SSL_VERIFY_PEER, NULL);
	if (with_cert)
		CHECK(SSL_CTX_use_certificate_file(c->ctx, cert_path, SSL_FILETYPE_PEM) == 1 &&
			SSL_CTX_use_PrivateKey_file(c->ctx, key_path, SSL_FILETYPE_PEM) == 1);
	c->ssl = SSL_new(c->ctx);
	c->fd = peer_connect(s);
	SSL_set_fd(c->ssl, c->fd);
	SSL_set1_host(c->ssl, "localhost");
	if (alpn)
		SSL_set_alpn_protos(c->ssl, (const unsigned char *)alpn, (unsigned)strlen(alpn));
	return SSL_connect(c->ssl) == 1;
}

static void client_close(struct tls_client *c)
{
	SSL_free(c->ssl);
	SSL_CTX_free(c->ctx);
	close(c->fd);
}

static void ask(struct tls_client *c, const char *request, struct buf *out)
{
	char chunk[65536];
	int n = SSL_write(c->ssl, request, (int)strlen(request));
	CHECK(n == (int)strlen(request));
	while ((n = SSL_read(c->ssl, chunk, sizeof(chunk))) > 0)
		buf_put(out, chunk, (size_t)n);
	/* Not cut off: the server says goodbye. */
	assert_int_equal(SSL_get_error(c->ssl, n), SSL_ERROR_ZERO_RETURN);
}

static void serves_both_versions(void **state)
{
	(void)state;
	struct net_server_config config = tls_config();
	struct net_server *s = peer_start(&config);
	struct tls_client c;
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 64 << 20);
	CHECK(client_open(&c, s, "\10http/1.1", false));
	ask(&c, "GET /show/x HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n", &out);
	CHECK(str_ends(buf_view(&out), STR("GET /show/x?")));
	client_close(&c);
	/* Large answers are more than the ciphertext that may wait. */
	buf_clear(&out);
	CHECK(client_open(&c, s, NULL, false));
	ask(&c, "GET /large HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n", &out);
	CHECK(out.len > 8 << 20);
	bool same = true;
	for (size_t i = 0; i < 8 << 20; i++)
		same &= out.data[out.len - (8 << 20) + i] == (uint8_t)(i * 7 + (i >> 11));
	CHECK(same);
	client_close(&c);
	const unsigned char *alpn;
	unsigned len;
	CHECK(client_open(&c, s, "\2h2\10http/1.1", false));
	SSL_get0_alpn_selected(c.ssl, &alpn, &len);
	CHECK_STR(str_make(alpn, len), "h2");
	client_close(&c);
	CHECK(!client_open(&c, s, "\3foo", false));
	client_close(&c);
	PEER_UNTIL(peer_metric(s, "firn_net_connections") == 0);
	CHECK(peer_metric(s, "firn_net_body_bytes") == 0);
	net_server_stop(s);
}

/* As small as the pieces may come. */
static void refuses_weak_ciphers(void **state)
{
	(void)state;
	static const struct {
		const char *name, *ciphers;
		char groups[8];
		bool good;
	} cases[] = {
		{ "AEAD", "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256", "P-256",
			true },
		{ "CBC", "ECDHE-ECDSA-AES128-SHA256:ECDHE-RSA-AES128-SHA256", "P-256", false },
		{ "RSA alone", "AES128-GCM-SHA256", "P-256", false },
		{ "a curve", "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256", "P-521",
			false },
	};
	struct net_server_config config = tls_config();
	struct net_server *s = peer_start(&config);
	FOR_EACH_CASE (c, cases) {
		struct tls_client x = { .ctx = SSL_CTX_new(TLS_client_method()) };
		SSL_CTX_set_max_proto_version(x.ctx, TLS1_2_VERSION);
		CHECK(SSL_CTX_set_cipher_list(x.ctx, c->ciphers) == 1);
		char groups[sizeof(c->groups)]; /* the macro wants no const */
		memcpy(groups, c->groups, sizeof(groups));
		CHECK(SSL_CTX_set1_groups_list(x.ctx, groups) == 1);
		x.ssl = SSL_new(x.ctx);
		x.fd = peer_connect(s);
		SSL_set_fd(x.ssl, x.fd);
		CHECK_CASE(c, (SSL_connect(x.ssl) == 1) == c->good);
		client_close(&x);
	}
	net_server_stop(s);
}

static void takes_a_byte_at_a_time(void **state)
{
	(void)state;
	struct net_server_config config = tls_config();
	struct net_server *s = peer_start(&config);
	struct tls_client c;
	c.ctx = SSL_CTX_new(TLS_client_method());
	c.ssl = SSL_new(c.ctx);
	c.fd = peer_connect(s);
	BIO *in = BIO_new(BIO_s_mem()), *made = BIO_new(BIO_s_mem());
	BIO_set_mem_eof_return(in, -1);
	SSL_set_bio(c.ssl, in, made);
	SSL_set_connect_state(c.ssl);
	static const char request[] = "GET /show/x HTTP/1.1\r\nhost: h\r\n\r\n";
	char got[4096] = "";
	bool asked = false;
	for (int turn = 0; turn < 20000 && !got[0]; turn++) {
		char byte;
		if (!SSL_is_init_finished(c.ssl))
			(void)SSL_do_handshake(c.ssl);
		else if (!asked)
			asked = SSL_write(c.ssl, request, sizeof(request) - 1) > 0;
		else
			(void)SSL_read(c.ssl, got, sizeof(got) - 1);
		while (BIO_read(made, &byte, 1) == 1)
			CHECK(peer_send(c.fd, &byte, 1));
		struct pollfd p = { .fd = c.fd, .events = POLLIN };
		if (poll(&p, 1, 1) > 0 && recv(c.fd, &byte, 1, 0) == 1)
			(void)!BIO_write(in, &byte, 1);
	}
	CHECK(strstr(got, "200 OK"));
	client_close(&c);
	net_server_stop(s);
}

static void tells_those_who_speak_plainly(void **state)
{
	(void)state;
	struct net_server_config config = tls_config();
	struct net_server *s = peer_start(&config);
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 10000);
	static const char request[] = "GET / HTTP/1.1\r\nhost: h\r\n\r\n";
	peer_exchange(s, request, sizeof(request) - 1, &out);
	CHECK(str_starts(buf_view(&out), STR("HTTP/1.0 400 ")));
	CHECK(str_ends(buf_view(&out), STR("This is an HTTPS server: use https://\n")));
	buf_clear(&out);
	peer_exchange(s, "\x16\3\1\0\4abcd", 9, &out);
	PEER_UNTIL(peer_metric(s, "firn_net_tls_failures_total") == 2);
	net_server_stop(s);
}

/* A handshake is given as long as a head. */
static void ends_slow_handshakes(void **state)
{
	(void)state;
	struct net_server_config config = tls_config();
	config.header_timeout_ns = 200 * NS_PER_MS;
	struct net_server *s = peer_start(&config);
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 10000);
	int silent = peer_connect(s), half = peer_connect(s);
	CHECK(peer_send(half, "\x16\3\1\2\0\1", 6));
	CHECK(peer_receive(silent, &out, NULL) && peer_receive(half, &out, NULL));
	CHECK(peer_metric(s, "firn_net_timeouts_total") == 2);
	close(silent);
	close(half);
	net_server_stop(s);
}

static long serial_seen(const struct net_server *s)
{
	struct tls_client c = { .ctx = SSL_CTX_new(TLS_client_method()) };
	c.ssl = SSL_new(c.ctx);
	c.fd = peer_connect(s);
	SSL_set_fd(c.ssl, c.fd);
	CHECK(SSL_connect(c.ssl) == 1);
	X509 *x = SSL_get1_peer_certificate(c.ssl);
	long serial = ASN1_INTEGER_get(X509_get0_serialNumber(x));
	X509_free(x);
	client_close(&c);
	return serial;
}

static void loads_what_has_changed(void **state)
{
	(void)state;
	struct net_server_config config = tls_config();
	struct net_server *s = peer_start(&config);
	assert_int_equal(serial_seen(s), 1);
	make_certificate(2);
	PEER_UNTIL(serial_seen(s) == 2);
	/* A torn file leaves the old one in place, and is counted. */
	FILE *f = fopen(cert_path, "w");
	CHECK(f && fputs("-----BEGIN", f) >= 0 && fclose(f) == 0);
	PEER_UNTIL(
		serial_seen(s) == 2 && peer_metric(s, "firn_net_tls_reload_failures_total") >= 1);
	make_certificate(3);
	PEER_UNTIL(serial_seen(s) == 3);
	CHECK(peer_metric(s, "firn_net_tls_reloads_total") == 2);
	net_server_stop(s);
	make_certificate(1);
}

static void asks_for_certificates(void **state)
{
	(void)state;
	struct net_server_config config = tls_config();
	config.tls_client_ca_file = cert_path;
	struct net_server *s = peer_start(&config);
	struct tls_client c;
	char byte;
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 10000);
	CHECK(client_open(&c, s, NULL, true));
	ask(&c, "GET /show/x HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n", &out);
	CHECK(str_ends(buf_view(&out), STR("GET /show/x?")));
	client_close(&c);
	/* In TLS 1.3 the client learns it with its first read. */
	if (client_open(&c, s, NULL, false))
		CHECK(SSL_read(c.ssl, &byte, 1) <= 0);
	client_close(&c);
	PEER_UNTIL(peer_metric(s, "firn_net_tls_failures_total") == 1);
	net_server_stop(s);
}

static void our_client_speaks_it(void **state)
{
	(void)state;
	struct net_server_config config = tls_config();
	struct net_server *s = peer_start(&config);
	struct net_client *c;
	struct err e;
	char url[200];
	bool retry;
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 64 << 20);
	snprintf(url, sizeof(url), "https://%s", net_server_address(s));
	CHECK_OK(net_client_new(url, &c, &e), &e);
	/* A certificate that nobody has heard of. */
	assert_int_equal(net_client_rpc(c, "/t.Test/Echo", STR("x"), MINUTE, &out, &retry, &e),
		E_UNAVAILABLE);
	CHECK(strstr(e.text, "TLS with https://127.0.0.1:") && strstr(e.text, "self-signed"));
	net_client_pin(c, cert_path);
	for (int i = 0; i < 3; i++) {
		buf_clear(&out);
		CHECK_OK(net_client_rpc(c, "/t.Test/Echo", STR("x"), MINUTE, &out, &retry, &e), &e);
		CHECK_STR(buf_view(&out), "x");
	}
	size_t large = 20 << 20;
	char *bytes = malloc(large);
	for (size_t i = 0; i < large; i++)
		bytes[i] = (char)(i * 31 + (i >> 9));
	buf_clear(&out);
	CHECK_OK(
		net_client_rpc(c, "/t.Test/Echo", str_make(bytes, large), MINUTE, &out, &retry, &e),
		&e);
	CHECK(str_eq(buf_view(&out), str_make(bytes, large)));
	free(bytes);
	CHECK(peer_metric(s, "firn_net_connections_accepted_total") == 2);
	net_client_free(c);
	/* Trusted by its authority, it must have the right name. */
	setenv("SSL_CERT_FILE", cert_path, 1);
	CHECK_OK(net_client_new(url, &c, &e), &e);
	CHECK_OK(net_client_rpc(c, "/t.Test/Echo", STR("x"), MINUTE, &out, &retry, &e), &e);
	net_client_free(c);
	net_server_stop(s);
	config.address = "0.0.0.0:0";
	s = peer_start(&config);
	snprintf(url, sizeof(url), "https://127.0.0.2%s", strrchr(net_server_address(s), ':'));
	CHECK_OK(net_client_new(url, &c, &e), &e);
	enum status st = net_client_rpc(c, "/t.Test/Echo", STR("x"), MINUTE, &out, &retry, &e);
	assert_int_equal(st, E_UNAVAILABLE);
	CHECK(strstr(e.text, "IP address mismatch"));
	net_client_trust(c, cert_path); /* named by a flag, its name is checked all the same */
	st = net_client_rpc(c, "/t.Test/Echo", STR("x"), MINUTE, &out, &retry, &e);
	assert_int_equal(st, E_UNAVAILABLE);
	CHECK(strstr(e.text, "IP address mismatch"));
	net_client_trust_anybody(c);
	CHECK_OK(net_client_rpc(c, "/t.Test/Echo", STR("x"), MINUTE, &out, &retry, &e), &e);
	net_client_free(c);
	net_server_stop(s);
	/* A server without TLS is no server with it. */
	config = peer_config();
	s = peer_start(&config);
	snprintf(url, sizeof(url), "https://%s", net_server_address(s));
	CHECK_OK(net_client_new(url, &c, &e), &e);
	assert_int_equal(net_client_rpc(c, "/t.Test/Echo", STR("x"), MINUTE, &out, &retry, &e),
		E_UNAVAILABLE);
	net_client_free(c);
	net_server_stop(s);
}

/* Only to be written to, by root too. */
#define CLOSED_FILE "/proc/sys/net/ipv4/route/flush"

static int open_for_us(const char *path)
{
	return open(strcmp(path, CLOSED_FILE) == 0 ? cert_path : "/none", O_RDONLY | O_CLOEXEC);
}

/* A client that gave its privileges up has a broker open its files. */
static void reads_what_another_opens(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	CLEANUP(fd_cleanup) int refused = open(CLOSED_FILE, O_RDONLY | O_CLOEXEC);
	struct err e = { 0 };
	char url[160];
	bool retry;
	if (refused >= 0 || errno != EACCES)
		SKIP("needs a file that is closed to everybody");
	buf_init(&out, 1 << 20);
	make_certificate(1);
	struct net_server_config config = tls_config();
	struct net_server *s = peer_start(&config);
	struct net_client *c = NULL;
	snprintf(url, sizeof(url), "https://%s", net_server_address(s));
	CHECK_OK(net_client_new(url, &c, &e), &e);
	net_client_trust(c, CLOSED_FILE);
	CHECK(net_client_rpc(c, "/t.Test/Echo", STR("x"), MINUTE, &out, &retry, &e) ==
		E_UNAVAILABLE);
	CHECK(strstr(e.text, "open " CLOSED_FILE ": Permission denied"));
	os_set_broker(open_for_us, NULL);
	CHECK_OK(net_client_rpc(c, "/t.Test/Echo", STR("x"), MINUTE, &out, &retry, &e), &e);
	os_set_broker(NULL, NULL);
	net_client_free(c);
	net_server_stop(s);
}

static void refuses_files_that_are_none(void **state)
{
	(void)state;
	static const struct {
		const char *name, *cert, *key, *ca, *says;
	} cases[] = {
		{ "no file", "/nowhere", NULL, NULL, "certificate /nowhere: " },
		{ "no certificate", "/dev/null", NULL, NULL, "certificate /dev/null: " },
		{ "no key", NULL, "/dev/null", NULL, "key /dev/null: " },
		{ "no authority", NULL, NULL, "/dev/null", "certificate authority /dev/null: " },
	};
	FOR_EACH_CASE (c, cases) {
		struct net_server_config config = tls_config();
		struct net_server *s = NULL;
		struct err e = { 0 };
		config.tls_cert_file = c->cert ? c->cert : cert_path;
		config.tls_key_file = c->key ? c->key : key_path;
		config.tls_client_ca_file = c->ca;
		CHECK_CASE(c, net_server_start(&config, peer_routes, 1, &s, &e) == E_INVALID);
		CHECK_CASE(c, str_starts(str_of(e.text), str_of(c->says)));
	}
}

/* More begun handshakes than may be: they give way to one that goes on. */
static void old_handshakes_give_way(void **state)
{
	(void)state;
	struct net_server_config config = tls_config();
	config.handshakes_max = 4;
	struct net_server *s = peer_start(&config);
	struct tls_client c;
	int half[12];
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 64 << 20);
	for (size_t i = 0; i < ARRAY_COUNT(half); i++)
		half[i] = peer_connect(s);
	CHECK(client_open(&c, s, NULL, false));
	ask(&c, "GET /show/x HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n", &out);
	CHECK(str_ends(buf_view(&out), STR("GET /show/x?")));
	client_close(&c);
	buf_clear(&out);
	net_server_write_metrics(s, &out);
	buf_u8(&out, 0);
	static const char name[] = "\nfirn_net_tls_handshakes_dropped_total ";
	const char *at = strstr((char *)out.data, name);
	CHECK(at && strtoul(at + strlen(name), NULL, 10) >= 9);
	for (size_t i = 0; i < ARRAY_COUNT(half); i++)
		close(half[i]);
	net_server_stop(s);
}

TEST_MAIN(cmocka_unit_test(makes_its_files), cmocka_unit_test(serves_both_versions),
	cmocka_unit_test(refuses_weak_ciphers), cmocka_unit_test(takes_a_byte_at_a_time),
	cmocka_unit_test(tells_those_who_speak_plainly), cmocka_unit_test(ends_slow_handshakes),
	cmocka_unit_test(old_handshakes_give_way), cmocka_unit_test(loads_what_has_changed),
	cmocka_unit_test(asks_for_certificates), cmocka_unit_test(our_client_speaks_it),
	cmocka_unit_test(reads_what_another_opens), cmocka_unit_test(refuses_files_that_are_none),
	cmocka_unit_test(removes_its_files))
