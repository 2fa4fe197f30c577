#!/usr/bin/env python3
"""Containers from outside: firn up, processes in control groups as Docker and Kubernetes make them, and
both of them played here: Docker's API on a Unix socket, the Kubernetes API over TLS with a token.

As root (else: skipped). The API is away at first: the path alone labels. Then it comes, with another
token than the first, and the same process gets its pod's labels; engines are asked once. A pod that
comes later is told of by the API's watch: nobody asks for it.

usage: test_containers.py FIRN
"""

import http.server
import itertools
import json
import os
import shutil
import socketserver
import ssl
import subprocess
import sys
import tempfile
import threading
import time

from firn import Checks, Firn

PATIENCE = 120
DOCKER_ID = "d0" * 32
POD_ID, INIT_ID, PAUSE_ID, NEW_ID = "a1" * 32, "a2" * 32, "a3" * 32, "a4" * 32
UID = "8cb56e4c-1234-4abc-9def-001122334455"
NEW_UID = "9cb56e4c-1234-4abc-9def-001122334455"
SELECTOR = "fieldSelector=spec.nodeName%3Dnode-7"
# Ends with its parent, also where that was killed.
BUSY = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1000000):
        pass
"""


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class Docker(http.server.BaseHTTPRequestHandler):
    asked = []
    protocol_version = "HTTP/1.1"

    def address_string(self):
        return "unix"

    def log_message(self, *_):
        pass

    def do_GET(self):
        Docker.asked.append(self.path)
        known = self.path == f"/containers/{DOCKER_ID}/json"
        body = {"message": "No such container"}
        if known:
            config = {"Image": "shop/db:3", "Env": ["PASSWORD=geheim"], "Labels": {"com.example/team": "data"}}
            body = {"Id": DOCKER_ID, "Name": "/db", "Config": config, "State": {"Pid": 1}}
        answer(self, 200 if known else 404, body)


class Api(http.server.BaseHTTPRequestHandler):
    token = ""
    refused = lists = 0
    watches = []
    events = []  # each watch is told all of them
    changed = threading.Condition()
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.headers.get("Authorization") != f"Bearer {Api.token}":
            Api.refused += 1
            return answer(self, 401, {"kind": "Status", "status": "Failure", "code": 401})
        if self.path == "/api/v1/nodes/node-7":
            return answer(self, 200, {"metadata": {"name": "node-7", "labels": {"zone": "eu-1"}}})
        if self.path.startswith("/api/v1/pods?watch=true&"):
            return self.watch()
        Api.lists += 1
        if self.path != f"/api/v1/pods?{SELECTOR}&resourceVersion=0":
            return answer(self, 400, {})
        first = pod("web-6f-x1", UID, POD_ID, INIT_ID)
        return answer(self, 200, {"kind": "PodList", "metadata": {"resourceVersion": "10"}, "items": [first]})

    def watch(self):
        Api.watches.append(self.path)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for at in itertools.count():
            with Api.changed:
                Api.changed.wait_for(lambda told=at: len(Api.events) > told)
            data = json.dumps(Api.events[at]).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))


def answer(handler, status, body):
    data = json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def pod(name, uid, container, init):
    owner = {"kind": "ReplicaSet", "name": "web-6f", "controller": True}
    return {
        "metadata": {
            "name": name, "namespace": "shop", "uid": uid, "resourceVersion": "11",
            "labels": {"app.kubernetes.io/name": "web"}, "ownerReferences": [owner],
        },
        "spec": {
            "nodeName": "node-7",
            "containers": [{"name": "app", "image": "shop/web:2"}],
            "initContainers": [{"name": "migrate", "image": "shop/migrate:1"}],
        },
        "status": {
            "phase": "Running", "podIP": "10.1.0.7", "hostIP": "10.0.0.7",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "app", "containerID": f"containerd://{container}"}],
            "initContainerStatuses": [{"name": "migrate", "containerID": f"containerd://{init}"}],
        },
    }


def certificates(folder):
    """A CA, and a certificate of it for 127.0.0.1."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=ca", "-days", "2")
    openssl("req", *key, "-keyout", "api.key", "-out", "api.csr", "-subj", "/CN=api")
    with open(os.path.join(folder, "san"), "w", encoding="utf-8") as file:
        file.write("subjectAltName=IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", "api.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
            "-out", "api.crt", "-days", "2", "-extfile", "san")


def unified_root():
    for place in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
        if os.path.exists(f"{place}/cgroup.procs") and os.access(place, os.W_OK):
            return place
    return None


class Group:
    """A control group with one busy process in it."""

    def __init__(self, root, path):
        self.root, self.path = root, path
        os.makedirs(root + path, exist_ok=True)
        self.process = subprocess.Popen([sys.executable, "-c", BUSY])
        with open(f"{root}{path}/cgroup.procs", "w", encoding="utf-8") as file:
            file.write(str(self.process.pid))

    def remove(self):
        self.process.kill()
        self.process.wait()
        path = self.path
        while path.strip("/"):
            for _ in range(100):
                try:
                    os.rmdir(self.root + path)
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.02)
            path = os.path.dirname(path)


def latest(firn, group, by):
    """Labels of the last series of the group's process; {} when it has none."""
    answer_ = firn.json("/api/series", query=f'{{pid="{group.process.pid}"}}', by=by, **{"from": "now-5m"})
    series = sorted(answer_["series"], key=lambda s: s["points"][-1][0])
    labels = [s["labels"] for s in series if any(s["labels"].values())]
    return labels[-1] if labels else {}


def wait_for(firn, group, **want):
    """Until some series of the process says so."""
    deadline = time.monotonic() + PATIENCE
    found = {}
    while time.monotonic() < deadline:
        found = latest(firn, group, list(want))
        if found == want:
            return True
        time.sleep(0.25)
    print(f"  last: {found}, wanted: {want}")
    return False


def serve(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def known_asked():
    """Questions about containers that somebody knows; the pod's own is none of these."""
    return sum(any(i in path for i in (DOCKER_ID, POD_ID, INIT_ID, NEW_ID)) for path in Docker.asked)


def run(checks, firn, groups, folder):
    docker, app, init, pause, new = groups
    checks.check(wait_for(firn, docker, container="db", db_id=DOCKER_ID, team="data"), "Docker names its container")
    checks.check(wait_for(firn, app, pod_uid=UID, pod=""), "without the API a pod has its uid from the path")
    labels = firn.json("/api/labels", query="{}")["labels"]
    values = [firn.get(f"/api/labels/{name}/values", query="{}").decode() for name in labels]
    checks.check(len(labels) > 3 and not any("geheim" in text for text in values), "no environment")
    api = firn.api
    api.server_activate()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(folder, "api.crt"), os.path.join(folder, "api.key"))
    api.socket = context.wrap_socket(api.socket, server_side=True)
    Api.token = "second"
    serve(api)
    deadline = time.monotonic() + PATIENCE
    while not Api.refused and time.monotonic() < deadline:
        time.sleep(0.1)
    checks.check(Api.refused > 0, "the first token is presented, and refused")
    with open(os.path.join(folder, "token"), "w", encoding="utf-8") as file:
        file.write("second\n")
    checks.check(
        wait_for(firn, app, namespace="shop", pod="web-6f-x1", container="app", image="shop/web:2", init="false",
                 name="web", zone="eu-1"),
        "with the API and the new token the same process has its pod's labels")
    checks.check(wait_for(firn, init, container="migrate", init="true"), "an init container is one")
    checks.check(wait_for(firn, pause, pod="web-6f-x1", container=""), "the pod's own process has the pod")
    deadline = time.monotonic() + PATIENCE
    while not Api.watches and time.monotonic() < deadline:
        time.sleep(0.1)
    watched = [w for w in Api.watches if SELECTOR in w and "&resourceVersion=10&" in w]
    checks.check(watched, f"the pods of the node are watched from the list on ({Api.watches})")
    with Api.changed:
        Api.events.append({"type": "ADDED", "object": pod("web-6f-x2", NEW_UID, NEW_ID, "")})
        Api.changed.notify_all()
    checks.check(wait_for(firn, new, pod="web-6f-x2", container="app", zone="eu-1"), "a new pod is told of")
    asked, lists = known_asked(), Api.lists
    time.sleep(6)
    checks.check(
        known_asked() == asked and Api.lists == lists,
        f"what is known is not asked again ({asked}, then {known_asked()}; lists: {lists}, then {Api.lists})")
    checks.check(firn.metric("firn_agent_container_failures_total") >= 1, "failures are counted")
    api.shutdown()


RULES = """relabel_configs:
- {source_labels: [__meta_docker_container_id], target_label: db_id}
- {source_labels: [__meta_docker_container_label_com_example_team], target_label: team}
- {source_labels: [__meta_kubernetes_pod_uid], target_label: pod_uid}
- {source_labels: [__meta_kubernetes_pod_container_image], target_label: image}
- {source_labels: [__meta_kubernetes_pod_container_init], target_label: init}
- {source_labels: [__meta_kubernetes_pod_label_app_kubernetes_io_name], target_label: name}
- {source_labels: [__meta_kubernetes_node_label_zone], target_label: zone}
"""


def bound_api():
    """It has its port, so that nobody else takes that, and does not listen yet."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api, bind_and_activate=False)
    server.server_bind()
    return server


def main():
    checks = Checks()
    root = unified_root()
    if os.geteuid() != 0 or not root or not shutil.which("openssl"):
        checks.skip("containers", "needs root, a control group file system of version 2, and openssl")
        checks.finish()
    folder = tempfile.mkdtemp(prefix="firn-containers-")
    groups = []
    firn = None
    try:
        certificates(folder)
        for name, text in (("rules.yaml", RULES), ("token", "first")):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        serve(UnixServer(os.path.join(folder, "docker.sock"), Docker))
        slice_, new_slice = (f"/firn-test.slice/kubepods-pod{u.replace('-', '_')}.slice" for u in (UID, NEW_UID))
        paths = [f"/firn-test.slice/docker-{DOCKER_ID}.scope"]
        paths += [f"{slice_}/cri-containerd-{i}.scope" for i in (POD_ID, INIT_ID, PAUSE_ID)]
        paths.append(f"{new_slice}/cri-containerd-{NEW_ID}.scope")
        groups = [Group(root, path) for path in paths]
        api = bound_api()
        port = api.server_address[1]
        firn = Firn(
            sys.argv[1], "up", folder, f"--cache-path={folder}/cache", "--node=node-7", "--profiling-duration=1s",
            f"--config-path={folder}/rules.yaml", f"--metadata-container-runtime-socket-path={folder}/docker.sock",
            f"--metadata-kubernetes-address=https://127.0.0.1:{port}", f"--metadata-kubernetes-ca-file={folder}/ca.crt",
            f"--metadata-kubernetes-token-file={folder}/token")
        firn.api = api
        run(checks, firn, groups, folder)
        checks.check(firn.stop() == 0, "it ends in order")
    finally:
        if firn and firn.process.poll() is None:
            print(firn.log_text()[-2000:])
            firn.kill()
        for group in groups:
            group.remove()
        shutil.rmtree(folder, ignore_errors=True)
    checks.finish()


if __name__ == "__main__":
    main()
