/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded EC2, STS and metadata service, which check the signatures (AWS Signature Version 4).
 */
#pragma once

#include "answers.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#define SECRET "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
#define TAKEN "taken+role/secret"

static const char instances[] =
	"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	"<DescribeInstancesResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">\n"
	" <requestId>r-1</requestId><reservationSet>\n"
	" <item><reservationId>r-9</reservationId><ownerId>111122223333</ownerId><groupSet/>\n"
	"  <instancesSet><item><instanceId>i-1</instanceId><imageId>ami-1</imageId>\n"
	"   <instanceState><code>16</code><name>running</name></instanceState>\n"
	"   <privateDnsName>ip-10-0-0-4.internal</privateDnsName>\n"
	"   <dnsName>ec2-1-2-3-4.example</dnsName><instanceType>m5.large</instanceType>\n"
	"   <placement><availabilityZone>eu-west-1a</availabilityZone></placement>\n"
	"   <platform>windows</platform><subnetId>subnet-1</subnetId><vpcId>vpc-1</vpcId>\n"
	"   <privateIpAddress>10.0.0.4</privateIpAddress><ipAddress>1.2.3.4</ipAddress>\n"
	"   <architecture>x86_64</architecture><instanceLifecycle>spot</instanceLifecycle>\n"
	"   <tagSet><item><key>aws:Name x</key><value>a &amp; b</value></item></tagSet>\n"
	"   <networkInterfaceSet>\n"
	"    <item><subnetId>subnet-1</subnetId><attachment><deviceIndex>1</deviceIndex>\n"
	"     </attachment><ipv6AddressesSet><item><ipv6Address>fd00::1</ipv6Address>\n"
	"     <isPrimaryIpv6>true</isPrimaryIpv6></item><item><ipv6Address>fd00::2</ipv6Address>\n"
	"     </item></ipv6AddressesSet></item>\n"
	"    <item><subnetId>subnet-1</subnetId></item><item><subnetId>subnet-2</subnetId></item>\n"
	"   </networkInterfaceSet></item>\n"
	"   <item><instanceId>i-0</instanceId></item></instancesSet></item>\n"
	" </reservationSet><nextToken>a/b=</nextToken></DescribeInstancesResponse>";
static const char second_page[] =
	"<R><reservationSet><item><instancesSet><item><instanceId>i-2</instanceId>"
	"<privateIpAddress>10.0.0.5</privateIpAddress></item></instancesSet></item>"
	"</reservationSet></R>";
static const char zones[] = "<R><availabilityZoneInfo><item><zoneName>eu-west-1a</zoneName>"
			    "<zoneId>euw1-az2</zoneId></item></availabilityZoneInfo></R>";
static const char role[] = "<A><AssumeRoleResult><Credentials><AccessKeyId>ASIATAKEN</AccessKeyId>"
			   "<SecretAccessKey>" TAKEN "</SecretAccessKey><SessionToken>tok/en="
			   "</SessionToken></Credentials></AssumeRoleResult></A>";

#define FIRST                                                                             \
	"10.0.0.4:9100 ami=ami-1 architecture=x86_64 availability_zone=eu-west-1a "       \
	"availability_zone_id=euw1-az2 instance_id=i-1 instance_lifecycle=spot "          \
	"instance_state=running instance_type=m5.large ipv6_addresses=,fd00::1,fd00::2, " \
	"owner_id=111122223333 platform=windows primary_ipv6_addresses=,,fd00::1, "       \
	"primary_subnet_id=subnet-1 private_dns_name=ip-10-0-0-4.internal "               \
	"private_ip=10.0.0.4 public_dns_name=ec2-1-2-3-4.example public_ip=1.2.3.4 "      \
	"region=eu-west-1 subnet_id=,subnet-1,subnet-2, tag_aws_Name_x=a & b vpc_id=vpc-1\n"
#define SECOND "10.0.0.5:9100 instance_id=i-2 private_ip=10.0.0.5 region=eu-west-1\n"

/* ---- signatures ---- */

static inline void hex(const unsigned char *v, size_t len, char *out)
{
	for (size_t i = 0; i < len; i++)
		snprintf(out + 2 * i, 3, "%02x", v[i]);
}

static inline void sha256_hex(struct str s, char out[65])
{
	unsigned char v[32];
	CHECK(EVP_Digest(s.p, s.len, v, NULL, EVP_sha256(), NULL) == 1);
	hex(v, sizeof(v), out);
}

static inline void hmac(const void *key, size_t key_len, struct str s, unsigned char out[32])
{
	CHECK(HMAC(EVP_sha256(), key, (int)key_len, (const unsigned char *)s.p, s.len, out, NULL));
}

static inline struct str between(struct str s, const char *before, char end)
{
	const char *at = memmem(s.p, s.len, before, strlen(before));
	if (!at)
		return STR("");
	struct str rest =
		str_make(at + strlen(before), (size_t)(s.p + s.len - at) - strlen(before));
	return str_sub(rest, 0, str_index(rest, end));
}

/* What a request of this `secret` must say, computed anew. */
static inline bool is_signed(const struct net_request *r, const char *secret, const char *service)
{
	struct str auth = net_header_find(r, "authorization"), name;
	struct str names = between(auth, "SignedHeaders=", ','), rest = names;
	struct str date = net_header_find(r, "x-amz-date");
	unsigned char key[100], v[32];
	char body[65], canonical[8192], digest[65], text[400], want[65];
	CHECK(names.len && date.len == 16);
	sha256_hex(r->body, body);
	int at = snprintf(canonical, sizeof(canonical), "POST\n%.*s\n\n", STR_ARG(r->path));
	while (str_split(&rest, ';', &name)) {
		char key_of[64];
		snprintf(key_of, sizeof(key_of), "%.*s", STR_ARG(name));
		at += snprintf(canonical + at, sizeof(canonical) - (size_t)at, "%s:%.*s\n", key_of,
			STR_ARG(net_header_find(r, key_of)));
	}
	snprintf(
		canonical + at, sizeof(canonical) - (size_t)at, "\n%.*s\n%s", STR_ARG(names), body);
	sha256_hex(str_of(canonical), digest);
	snprintf(text, sizeof(text), "AWS4-HMAC-SHA256\n%.*s\n%.8s/eu-west-1/%s/aws4_request\n%s",
		STR_ARG(date), date.p, service, digest);
	snprintf((char *)key, sizeof(key), "AWS4%s", secret);
	hmac(key, strlen((char *)key), str_sub(date, 0, 8), v);
	hmac(v, 32, STR("eu-west-1"), v);
	hmac(v, 32, str_of(service), v);
	hmac(v, 32, STR("aws4_request"), v);
	hmac(v, 32, str_of(text), v);
	hex(v, 32, want);
	return str_eq(between(auth, "Signature=", ','), str_of(want));
}

/* ---- the services ---- */

static atomic_int unsigned_asked;

static inline bool in(struct str s, const char *what)
{
	return memmem(s.p, s.len, what, strlen(what));
}

static inline const char *ec2(const struct net_request *r, int *code)
{
	bool taken = str_eq(net_header_find(r, "x-amz-security-token"), STR("tok/en="));
	const char *secret = taken ? TAKEN : SECRET;
	if (!is_signed(r, secret, "ec2")) {
		*code = 403;
		return "<Response><Errors><Error><Code>AuthFailure</Code><Message>wrong signature"
		       "</Message></Error></Errors></Response>";
	}
	if (in(r->body, "Action=DescribeAvailabilityZones"))
		return zones;
	CHECK(in(r->body, "Action=DescribeInstances&") && in(r->body, "&Version=2016-11-15"));
	if (in(r->body, "&Filter.1.Name=tag%3Aenv&Filter.1.Value.1=a%20b&Filter.1.Value.2=c"))
		return "<R><reservationSet/></R>";
	return in(r->body, "&NextToken=a%2Fb%3D") ? second_page : instances;
}

static inline const char *sts(const struct net_request *r, int *code)
{
	if (in(r->body, "WebIdentityToken=web.id")) {
		atomic_fetch_add(&unsigned_asked, !net_header_find(r, "authorization").len);
		return "<A><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIAWEB"
		       "</AccessKeyId><SecretAccessKey>" TAKEN "</SecretAccessKey><SessionToken>"
		       "tok/en=</SessionToken></Credentials></AssumeRoleWithWebIdentityResult></A>";
	}
	if (is_signed(r, SECRET, "sts") && in(r->body, "RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr"))
		return role;
	*code = 403;
	return "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>";
}

static inline const char *metadata(const struct net_request *r, int *code)
{
	if (str_eq(r->path, STR("/container")) &&
		str_eq(net_header_find(r, "authorization"), STR("pod-token")))
		return "{\"AccessKeyId\":\"ASIAPOD\",\"SecretAccessKey\":\"" TAKEN
		       "\",\"Token\":\"tok/en=\"}";
	if (str_eq(r->method, STR("PUT"))) {
		CHECK_STR(net_header_find(r, "x-aws-ec2-metadata-token-ttl-seconds"), "300");
		return "imds-token";
	}
	if (str_eq(net_header_find(r, "x-aws-ec2-metadata-token"), STR("imds-token"))) {
		if (str_eq(r->path, STR("/latest/meta-data/placement/region")))
			return "eu-west-1";
		if (str_eq(r->path, STR("/latest/meta-data/iam/security-credentials/")))
			return "the-role\n";
		if (str_eq(r->path, STR("/latest/meta-data/iam/security-credentials/the-role")))
			return "{\"AccessKeyId\":\"ASIAINST\",\"SecretAccessKey\":\"" TAKEN
			       "\",\"Token\":\"tok/en=\"}";
	}
	*code = 401;
	return "";
}

static inline void serve(void *ctx, const struct net_request *r, struct net_response *out)
{
	int code = 200;
	(void)ctx;
	out->content_type = "text/xml";
	if (str_eq(r->path, STR("/ec2")))
		buf_cstr(&out->body, ec2(r, &code));
	else if (str_eq(r->path, STR("/sts")))
		buf_cstr(&out->body, sts(r, &code));
	else
		buf_cstr(&out->body, metadata(r, &code));
	out->http_status = code;
}

static inline struct net_server *start(char url[100])
{
	static const struct net_route routes[] = { { .path = "/*", .fn = serve } };
	struct net_server_config c;
	struct net_server *server = NULL;
	struct err e = { 0 };
	char sts_url[120];
	net_server_config_default(&c);
	c.address = "127.0.0.1:0";
	CHECK_OK(net_server_start(&c, routes, 1, &server, &e), &e);
	snprintf(url, 100, "http://%s", net_server_address(server));
	snprintf(sts_url, sizeof(sts_url), "%s/sts", url);
	static const char *const cleared[] = { "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE",
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ENDPOINT_URL_EC2", "HOME",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
		"AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE" };
	for (size_t i = 0; i < ARRAY_COUNT(cleared); i++)
		unsetenv(cleared[i]);
	setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null", 1);
	setenv("AWS_ENDPOINT_URL_STS", sts_url, 1);
	setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", url, 1);
	return server;
}

static inline enum status find(const char *url, const char *more, struct buf *out, struct err *e)
{
	char yaml[600];
	snprintf(yaml, sizeof(yaml), "endpoint: %s/ec2\nport: 9100\n%s", url, more);
	return answers_find("ec2_sd_configs", "__meta_ec2_", yaml, out, e);
}
