// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { fitName, fitText, shortName, splitName, splitValue } from "../src/model/names.ts";

const GRPC = "github.com/grpc-ecosystem/go-grpc-middleware/v2/grpc.(*Server).handleStream";

test("texts are cut to the room there is", () => {
	assert.equal(fitText("abcdef", 6), "abcdef");
	assert.equal(fitText("abcdef", 4), "abc…");
	assert.equal(fitText("abcdef", 1), "");
});

test("arguments go, receivers and namespaces stay", () => {
	assert.equal(shortName("a::b<int, c<d>>(char const*)"), "a::b");
	assert.equal(shortName("operator<(a, b)"), "operator<(a, b)");
	assert.equal(shortName("std::operator<< <char>(x)"), "std::operator<< <char>(x)");
	assert.equal(shortName("(anonymous namespace)::f(int)"), "(anonymous namespace)::f");
	assert.equal(shortName("a::(anonymous namespace)::f(int) const"), "a::(anonymous namespace)::f");
	assert.equal(shortName("net.(*conn).Read"), "net.(*conn).Read");
	assert.equal(shortName("btree.(*node[...]).iterate"), "btree.(*node[...]).iterate");
	assert.equal(shortName("f(int (*)(char), b->c)"), "f");
	assert.equal(shortName("<module>"), "<module>");
	assert.equal(shortName("block in <main>"), "block in <main>");
	assert.equal(shortName("order.<locals>.<genexpr>"), "order.<locals>.<genexpr>");
	assert.equal(shortName("java.lang.String.<init>"), "java.lang.String.<init>");
	assert.equal(shortName("function <app.lua:12>"), "function <app.lua:12>");
	assert.equal(shortName("(anonymous) app.js:24"), "(anonymous) app.js:24");
	assert.equal(shortName("(no name)"), "(no name)");
	assert.equal(shortName("f"), "f");
});

test("a cut name keeps its useful end", () => {
	assert.equal(fitName(GRPC, 100), GRPC);
	assert.equal(fitName(GRPC, 40), "…/v2/grpc.(*Server).handleStream");
	assert.equal(fitName(GRPC, 30), "…/grpc.(*Server).handleStream");
	assert.equal(fitName(GRPC, 24), "…(*Server).handleStream");
	assert.equal(fitName(GRPC, 14), "…handleStream");
	assert.equal(fitName(GRPC, 8), "handleS…");
	assert.equal(fitName("std::vector<int>::push_back(int&&)", 12), "…push_back");
	assert.equal(fitName("compile/internal/ssa.Compile.func1", 18), "…Compile.func1");
	assert.equal(fitName("compile/internal/ssa.Compile.func1.1", 18), "…Compile.func1.1");
	assert.equal(fitName("a_function_without_parts", 8), "a_funct…");
	assert.equal(fitName("a.b", 0), "");
	assert.equal(fitName("a.b", 1), "b");
});

test("the dots of a place in a file are not those of namespaces", () => {
	const glib = "libglib-2.0.so.0.7400.6+0x547a0";
	assert.equal(shortName(glib), glib);
	assert.equal(fitName(glib, 31), glib);
	assert.equal(fitName(glib, 20), "libglib-2.0…+0x547a0");
	assert.equal(fitName(glib, 14), "libglib-2.0.s…");
	assert.equal(fitName("python3.11+0x1a2b3c", 18), "python3.…+0x1a2b3c");
	assert.equal(fitName("python3.11+0x1a2b3c", 12), "python3.11");
	assert.equal(fitName("libbpf.so.1.1.2+0x9f10", 8), "libbpf.…");
	assert.equal(fitName("/usr/lib/libc.so.6+0x10", 14), "libc.so.6+0x10");
	assert.equal(fitName("[anon]+0x7f0010", 7), "[anon]");
	assert.deepEqual(splitName(glib), ["libglib-2.0.so.0.7400.6", "+0x547a0"]);
});

test("names are split where they may be cut", () => {
	assert.deepEqual(splitName(GRPC), [
		"github.com/grpc-ecosystem/go-grpc-middleware/v2/",
		"grpc.(*Server).handleStream",
	]);
	assert.deepEqual(splitName("main"), ["", "main"]);
	assert.deepEqual(splitName("a::b::c"), ["a::", "b::c"]);
	const pod = (n: string) => `deployment-with-a-rather-long-name-7f9c${n}`;
	assert.notEqual(splitValue(pod("-aaaaa"))[1], splitValue(pod("-aaaab"))[1]);
	assert.deepEqual(splitValue("python3"), ["", "python3"]);
});
