/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS over OpenSSL without sockets: ciphertext goes in and out through memory, so that http does no
 * I/O and the loop reads and writes the same way as without TLS. Everything runs in the loop's
 * thread.
 *
 * When a connection comes, the certificate files are checked for changes, at most once a second. If
 * one has changed, the new pair is loaded, and used if certificate and key fit; until then the old
 * pair is used.
 */
#include "net/tls.h"
#include "base/clock.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#define LOOK_NS NS_PER_SEC
/* As Mozilla's "intermediate" (wiki.mozilla.org/Security/Server_Side_TLS): of TLS 1.2 only ciphers
 * with forward secrecy and authenticated encryption. HTTP/2 forbids the others too (RFC 9113,
 * appendix A). */
#define CIPHERS_12 "ECDHE+AESGCM:ECDHE+CHACHA20"
#define GROUPS "X25519:P-256:P-384"
/* Waiting ciphertext; above this nothing more is encrypted. */
#define OUT_HIGH_MAX ((size_t)64 << 10)
#define OUT_MAX ((size_t)1 << 20)
#define PEM_BYTES_MAX ((size_t)8 << 20) /* of a file of certificates or a key for a client */

struct stamp {
	struct timespec time;
	off_t size;
	ino_t inode;
};

struct net_tls {
	const char *files[3]; /* certificate, key, clients' CA or NULL */
	bool client_optional, tls13_only;
	struct stamp stamps[3];
	SSL_CTX *ctx;
	int64_t looked_ns;
};

struct net_tls_conn {
	SSL *ssl;
	BIO *in;
	BIO *made; /* ciphertext as OpenSSL made it */
	struct buf out;
	size_t out_at;
	bool starved; /* nothing can be decrypted until more bytes come */
	bool ended;
	bool failed;
	bool fresh; /* no byte has come yet */
	char why[120];
};

/* OpenSSL's first reason of the failure that just happened. */
static enum status fail(struct err *e, const char *what, const char *file)
{
	unsigned long code = ERR_peek_error();
	const char *why = !code                    ? NULL
			  : ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code))
						   : ERR_reason_error_string(code);
	ERR_clear_error();
	return err_set(e, E_INVALID, "%s %s: %s", what, file, why ? why : "it cannot be read");
}

/* ---- context ---- */

static int choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
	const unsigned char *in, unsigned in_len, void *ctx)
{
	static const unsigned char known[] = "\2h2\10http/1.1";
	unsigned char *chosen;
	(void)ssl;
	(void)ctx;
	if (SSL_select_next_proto(&chosen, out_len, known, sizeof(known) - 1, in, in_len) !=
		OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static enum status fill(SSL_CTX *ctx, const struct net_tls *t, struct err *e)
{
	if (SSL_CTX_use_certificate_chain_file(ctx, t->files[0]) != 1)
		return fail(e, "certificate", t->files[0]);
	if (SSL_CTX_use_PrivateKey_file(ctx, t->files[1], SSL_FILETYPE_PEM) != 1)
		return fail(e, "key", t->files[1]);
	if (SSL_CTX_check_private_key(ctx) != 1)
		return fail(e, "key", t->files[1]);
	if (!t->files[2])
		return OK;
	STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(t->files[2]);
	if (!names || SSL_CTX_load_verify_locations(ctx, t->files[2], NULL) != 1) {
		sk_X509_NAME_pop_free(names, X509_NAME_free);
		return fail(e, "certificate authority", t->files[2]);
	}
	SSL_CTX_set_client_CA_list(ctx, names);
	int must = t->client_optional ? 0 : SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | must, NULL);
	return OK;
}

static enum status load(const struct net_tls *t, SSL_CTX **out, struct err *e)
{
	ERR_clear_error();
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	if (!ctx)
		return err_set(e, E_NOMEM, "TLS");
	SSL_CTX_set_min_proto_version(ctx, t->tls13_only ? TLS1_3_VERSION : TLS1_2_VERSION);
	SSL_CTX_set_options(ctx,
		SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
	char groups[] = GROUPS; /* not const: the macro casts const away, which clang warns of */
	bool ok = SSL_CTX_set_cipher_list(ctx, CIPHERS_12) == 1 &&
		  SSL_CTX_set1_groups_list(ctx, groups) == 1;
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				      SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_alpn_select_cb(ctx, choose_alpn, NULL);
	/* OpenSSL requires an id for sessions if clients' certificates are requested. */
	SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"firn", 4);
	enum status s = ok ? fill(ctx, t, e) : fail(e, "TLS:", "ciphers and groups");
	if (s == OK)
		*out = ctx;
	else
		SSL_CTX_free(ctx);
	return s;
}

static void take_stamps(const struct net_tls *t, struct stamp out[3])
{
	for (size_t i = 0; i < 3; i++) {
		struct stat st;
		out[i] = (struct stamp){ 0 };
		if (t->files[i] && stat(t->files[i], &st) == 0)
			out[i] = (struct stamp){ st.st_mtim, st.st_size, st.st_ino };
	}
}

static bool same_stamp(const struct stamp *a, const struct stamp *b)
{
	return a->time.tv_sec == b->time.tv_sec && a->time.tv_nsec == b->time.tv_nsec &&
	       a->size == b->size && a->inode == b->inode;
}

enum status net_tls_new(const struct net_server_config *c, struct net_tls **out, struct err *e)
{
	struct net_tls *t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(e, E_NOMEM, "TLS");
	t->files[0] = c->tls_cert_file;
	t->files[1] = c->tls_key_file;
	t->files[2] = c->tls_client_ca_file;
	t->client_optional = c->tls_client_optional;
	t->tls13_only = c->tls13_only;
	t->looked_ns = clock_monotonic_ns();
	take_stamps(t, t->stamps);
	enum status s = load(t, &t->ctx, e);
	if (s != OK) {
		free(t);
		return s;
	}
	*out = t;
	return OK;
}

void net_tls_free(struct net_tls *t)
{
	if (!t)
		return;
	SSL_CTX_free(t->ctx);
	free(t);
}

/* While a pair is being written, certificate and key may not fit: it is tried again a second
 * later. */
static void look_again(struct net_tls *t, struct net_metrics *metrics)
{
	struct stamp now[3];
	SSL_CTX *fresh;
	if (clock_monotonic_ns() - t->looked_ns < LOOK_NS)
		return;
	t->looked_ns = clock_monotonic_ns();
	take_stamps(t, now);
	bool same = true;
	for (size_t i = 0; i < 3; i++)
		same &= same_stamp(&now[i], &t->stamps[i]);
	if (same)
		return;
	if (load(t, &fresh, NULL) != OK) {
		metric_add(&metrics->tls_reload_failed, 1);
		return;
	}
	metric_add(&metrics->tls_reloads, 1);
	memcpy(t->stamps, now, sizeof(now));
	SSL_CTX_free(t->ctx);
	t->ctx = fresh;
}

static struct net_tls_conn *conn_new(SSL_CTX *ctx)
{
	struct net_tls_conn *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->ssl = SSL_new(ctx);
	c->in = BIO_new(BIO_s_mem());
	c->made = BIO_new(BIO_s_mem());
	buf_init(&c->out, OUT_MAX);
	c->starved = c->fresh = true;
	if (!c->ssl || !c->in || !c->made) {
		BIO_free(c->in);
		BIO_free(c->made);
		SSL_free(c->ssl);
		free(c);
		return NULL;
	}
	BIO_set_mem_eof_return(c->in, -1);
	SSL_set_bio(c->ssl, c->in, c->made);
	return c;
}

/* ---- the client's context ---- */

/* Reads through os.h, so that the broker can open a file that this process may not. */
static enum status open_pem(const char *file, struct buf *bytes, BIO **out, struct err *e)
{
	struct err why = { 0 };
	buf_init(bytes, PEM_BYTES_MAX);
	enum status s = os_read_own(file, bytes, NULL, &why);
	if (s != OK)
		return err_set(e, E_INVALID, "%s", err_text(&why, s));
	*out = BIO_new_mem_buf(bytes->len ? (const void *)bytes->data : "", (int)bytes->len);
	return *out ? OK : err_set(e, E_NOMEM, "%s", file);
}

/* Adds all certificates of the file; a file without any is an error. */
static enum status add_authorities(SSL_CTX *ctx, const char *file, struct err *e)
{
	CLEANUP(buf_deinit) struct buf bytes = { 0 };
	BIO *in = NULL;
	size_t count = 0;
	X509 *x;
	enum status s = open_pem(file, &bytes, &in, e);
	while (s == OK && (x = PEM_read_bio_X509_AUX(in, NULL, NULL, NULL))) {
		if (X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), x) == 1)
			count++;
		X509_free(x);
	}
	BIO_free(in);
	if (s == OK && count == 0)
		return fail(e, "certificate authority", file);
	ERR_clear_error(); /* the end of the file is an error in OpenSSL's queue */
	return s;
}

static enum status trust(SSL_CTX *ctx, const struct net_tls_trust *t, struct err *e)
{
	if (t->anybody)
		return OK;
	if (!t->ca_file)
		return SSL_CTX_set_default_verify_paths(ctx) == 1
			       ? OK
			       : fail(e, "certificate authorities", "of this host");
	enum status s = add_authorities(ctx, t->ca_file, e);
	if (s != OK)
		return s;
	/* A server's certificate that is trusted itself is enough; its signer need not be. */
	X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx), X509_V_FLAG_PARTIAL_CHAIN);
	return OK;
}

/* Sets the server name to send and, with `check`, to verify. */
static bool expect_name(SSL *ssl, const char *host, bool check)
{
	/* An IP address is verified as an address, and not sent as a name. */
	X509_VERIFY_PARAM *ours = X509_VERIFY_PARAM_new();
	bool ip = ours && X509_VERIFY_PARAM_set1_ip_asc(ours, host) == 1;
	X509_VERIFY_PARAM_free(ours);
	/* As SSL_set_tlsext_host_name(), whose cast drops a const. */
	void *name = (void *)(uintptr_t)host;
	if (!ip &&
		SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name) != 1)
		return false;
	if (!check)
		return true;
	return ip ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1
		  : SSL_set1_host(ssl, host) == 1;
}

/* The file's first certificate is the client's own; the others lead to an authority. */
static enum status use_chain(SSL_CTX *ctx, const char *file, struct err *e)
{
	CLEANUP(buf_deinit) struct buf bytes = { 0 };
	BIO *in = NULL;
	X509 *x;
	enum status s = open_pem(file, &bytes, &in, e);
	if (s != OK)
		return s;
	x = PEM_read_bio_X509_AUX(in, NULL, NULL, NULL);
	bool good = x && SSL_CTX_use_certificate(ctx, x) == 1;
	X509_free(x);
	while (good && (x = PEM_read_bio_X509(in, NULL, NULL, NULL))) {
		good = SSL_CTX_add0_chain_cert(ctx, x) == 1; /* the context owns it now */
		if (!good)
			X509_free(x);
	}
	BIO_free(in);
	if (!good)
		return fail(e, "client's certificate", file);
	ERR_clear_error(); /* the end of the file is an error in OpenSSL's queue */
	return OK;
}

/* For keys with a password: nobody can be asked for it. */
static int no_password(char *out, int size, int writing, void *ctx)
{
	(void)out;
	(void)size;
	(void)writing;
	(void)ctx;
	return 0;
}

static enum status use_key(SSL_CTX *ctx, const char *file, struct err *e)
{
	CLEANUP(buf_deinit) struct buf bytes = { 0 };
	BIO *in = NULL;
	enum status s = open_pem(file, &bytes, &in, e);
	if (s != OK)
		return s;
	EVP_PKEY *key = PEM_read_bio_PrivateKey(in, NULL, no_password, NULL);
	bool good =
		key && SSL_CTX_use_PrivateKey(ctx, key) == 1 && SSL_CTX_check_private_key(ctx) == 1;
	EVP_PKEY_free(key);
	BIO_free(in);
	if (bytes.len)
		explicit_bzero(bytes.data, bytes.len);
	return good ? OK : fail(e, "client's key", file);
}

static enum status identify(SSL_CTX *ctx, const struct net_tls_identity *i, struct err *e)
{
	if (!i->cert_file)
		return OK;
	enum status s = use_chain(ctx, i->cert_file, e);
	return s == OK ? use_key(ctx, i->key_file, e) : s;
}

enum status net_tls_connect(const struct net_tls_trust *t, const struct net_tls_identity *i,
	const char *host, struct net_tls_conn **out, struct err *e)
{
	ERR_clear_error();
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	if (!ctx)
		return err_set(e, E_NOMEM, "TLS");
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_verify(ctx, t->anybody ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
	enum status s = trust(ctx, t, e);
	if (s == OK)
		s = identify(ctx, i, e);
	struct net_tls_conn *c = s == OK ? conn_new(ctx) : NULL;
	SSL_CTX_free(ctx);
	if (!c)
		return s != OK ? s : err_set(e, E_NOMEM, "TLS");
	(void)SSL_set_alpn_protos(c->ssl, (const unsigned char *)"\2h2", 3);
	if (!expect_name(c->ssl, host, !t->any_name && !t->anybody)) {
		net_tls_conn_free(c);
		return err_set(e, E_INVALID, "%s is not a host's name", host);
	}
	ERR_clear_error();
	SSL_set_connect_state(c->ssl);
	c->fresh = c->starved = false;
	*out = c;
	return OK;
}

/* ---- connection ---- */

struct net_tls_conn *net_tls_accept(struct net_tls *t, struct net_metrics *metrics)
{
	look_again(t, metrics);
	struct net_tls_conn *c = conn_new(t->ctx);
	if (c)
		SSL_set_accept_state(c->ssl);
	return c;
}

void net_tls_conn_free(struct net_tls_conn *c)
{
	if (!c)
		return;
	SSL_free(c->ssl); /* and both BIOs */
	buf_deinit(&c->out);
	free(c);
	ERR_clear_error();
}

/* Appends what OpenSSL has made to the bytes that wait to be sent. */
static void collect(struct net_tls_conn *c)
{
	char *p;
	long n = BIO_get_mem_data(c->made, &p);
	if (n <= 0)
		return;
	if (c->out_at == c->out.len)
		c->out.len = c->out_at = 0;
	buf_put(&c->out, p, (size_t)n);
	(void)BIO_reset(c->made);
	if (c->out.failed)
		c->failed = true;
}

bool net_tls_put(struct net_tls_conn *c, const void *bytes, size_t len)
{
	static const char refusal[] =
		"HTTP/1.0 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n"
		"This is an HTTPS server: use https://\n";
	if (c->failed)
		return false;
	if (c->fresh && len && *(const uint8_t *)bytes != 0x16) {
		/* The bytes do not begin a handshake; somebody who used http:// gets a readable
		 * answer. */
		buf_put(&c->out, refusal, sizeof(refusal) - 1);
		c->failed = true;
		return false;
	}
	c->fresh = c->starved = false;
	return BIO_write(c->in, bytes, (int)len) == (int)len;
}

static void note_failure(struct net_tls_conn *c)
{
	unsigned long code = ERR_peek_error();
	long verified = SSL_get_verify_result(c->ssl);
	const char *why = code ? ERR_reason_error_string(code) : NULL;
	if (code && ERR_GET_REASON(code) == SSL_R_WRONG_VERSION_NUMBER)
		why = "the other side does not speak it";
	if (verified != X509_V_OK)
		why = X509_verify_cert_error_string(verified);
	snprintf(c->why, sizeof(c->why), "%s", why ? why : "the peer broke it off");
	c->failed = true;
	ERR_clear_error();
}

const char *net_tls_why(const struct net_tls_conn *c)
{
	return c->why;
}

bool net_tls_ready(const struct net_tls_conn *c)
{
	return SSL_is_init_finished(c->ssl);
}

size_t net_tls_read(struct net_tls_conn *c, void *out, size_t max)
{
	if (c->failed || c->ended || c->starved)
		return 0;
	ERR_clear_error();
	int n = SSL_read(c->ssl, out, (int)max);
	collect(c);
	if (n > 0)
		return (size_t)n;
	switch (SSL_get_error(c->ssl, n)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		c->starved = true;
		break;
	case SSL_ERROR_ZERO_RETURN:
		c->ended = true;
		break;
	default:
		note_failure(c);
	}
	return 0;
}

bool net_tls_pending(const struct net_tls_conn *c)
{
	return !c->starved && !c->failed && !c->ended;
}

bool net_tls_failed(const struct net_tls_conn *c)
{
	return c->failed;
}

bool net_tls_ended(const struct net_tls_conn *c)
{
	return c->ended || c->failed;
}

size_t net_tls_write(struct net_tls_conn *c, const void *bytes, size_t len)
{
	if (c->failed || c->out.len - c->out_at >= OUT_HIGH_MAX || !SSL_is_init_finished(c->ssl))
		return 0;
	ERR_clear_error();
	int n = SSL_write(c->ssl, bytes, (int)MIN(len, OUT_HIGH_MAX));
	collect(c);
	if (n > 0)
		return (size_t)n;
	int why = SSL_get_error(c->ssl, n);
	c->failed |= why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE;
	return 0;
}

void net_tls_close(struct net_tls_conn *c)
{
	if (c->failed || !SSL_is_init_finished(c->ssl))
		return;
	ERR_clear_error();
	(void)SSL_shutdown(c->ssl);
	collect(c);
}

struct str net_tls_output(const struct net_tls_conn *c)
{
	return str_sub(buf_view(&c->out), c->out_at, c->out.len);
}

void net_tls_sent(struct net_tls_conn *c, size_t len)
{
	c->out_at += len;
	assert(c->out_at <= c->out.len);
	if (c->out_at < c->out.len)
		return;
	/* An idle connection keeps no memory for output. */
	buf_deinit(&c->out);
	buf_init(&c->out, OUT_MAX);
	c->out_at = 0;
}
