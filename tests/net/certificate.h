/* SPDX-License-Identifier: Apache-2.0 */
/* A folder with a certificate and its key, made here. */
#pragma once

#include "test.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <unistd.h>

static char dir[64], cert_path[100], key_path[100];

/* A certificate for localhost with this serial number, signed by itself. */
static inline void make_certificate(long serial)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	CHECK(key && x);
	X509_set_version(x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(x), serial);
	X509_gmtime_adj(X509_getm_notBefore(x), -3600);
	X509_gmtime_adj(X509_getm_notAfter(x), 86400);
	X509_NAME *name = X509_get_subject_name(x);
	X509_NAME_add_entry_by_txt(
		name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1, 0);
	X509_set_issuer_name(x, name);
	X509_set_pubkey(x, key);
	X509_EXTENSION *san =
		X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
	X509_add_ext(x, san, -1);
	X509_EXTENSION_free(san);
	CHECK(X509_sign(x, key, EVP_sha256()) > 0);
	FILE *f = fopen(cert_path, "w");
	CHECK(f && PEM_write_X509(f, x) == 1 && fclose(f) == 0);
	f = fopen(key_path, "w");
	CHECK(f && PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL) == 1 && fclose(f) == 0);
	X509_free(x);
	EVP_PKEY_free(key);
}

static inline int set_up(void)
{
	snprintf(dir, sizeof(dir), "/tmp/firn-tls-XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	snprintf(cert_path, sizeof(cert_path), "%s/cert.pem", dir);
	snprintf(key_path, sizeof(key_path), "%s/key.pem", dir);
	make_certificate(1);
	return 0;
}

static inline void removes_its_files(void **state)
{
	(void)state;
	CHECK(unlink(cert_path) == 0 && unlink(key_path) == 0 && rmdir(dir) == 0);
}

static inline void makes_its_files(void **state)
{
	(void)state;
	assert_int_equal(set_up(), 0);
}
