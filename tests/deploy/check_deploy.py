#!/usr/bin/env python3
"""Dashboards, alerts and manifests: what they name is there, and the agent has six capabilities.

usage: check_deploy.py
With promtool the rules and the dashboards' expressions are read by it; with helm the chart is checked,
and firn.yaml is what it makes.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
CAPABILITIES = ["BPF", "PERFMON", "SYS_PTRACE", "CHECKPOINT_RESTORE", "DAC_READ_SEARCH", "SYSLOG"]
problems = []


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=120)


def expect(good, what):
    if not good:
        problems.append(what)


def expressions():
    """What dashboards ask Prometheus, with the variables that Grafana replaces."""
    for path in sorted((DEPLOY / "grafana").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                if "expr" in target:
                    yield target["expr"].replace("$__rate_interval", "5m")


def check_metrics():
    source = "".join(p.read_text() for p in (ROOT / "src").rglob("*.[ch]"))
    text = (DEPLOY / "alerts.yaml").read_text() + "\n".join(expressions())
    names = set(re.findall(r"\b(?:firn|process)_[a-z_]+\b", text))
    expect(len(names) > 25, f"only {len(names)} metrics")
    for name in sorted(names):
        # Where a source writes only the end of a name its folder's prefix is in a macro.
        expect(name in source, f"alerts or dashboards name {name}, which nothing writes")


def check_promtool():
    tool = shutil.which("promtool")
    if not tool:
        print("promtool is not here: rules were not read by it")
        return
    with tempfile.TemporaryDirectory() as temporary:
        rules = pathlib.Path(temporary) / "dashboards.yaml"
        rules.write_text(json.dumps({"groups": [{"name": "d", "rules": [
            {"record": f"d:{i}", "expr": e} for i, e in enumerate(expressions())]}]}))
        for path in (DEPLOY / "alerts.yaml", rules):
            read = run(tool, "check", "rules", str(path))
            expect(read.returncode == 0, f"promtool: {read.stdout} {read.stderr}")


def check_manifest():
    text = (DEPLOY / "kubernetes/firn.yaml").read_text()
    version = (ROOT / "VERSION").read_text().strip()
    images = re.findall(r"image: \"localhost/firn-(server|agent):(.*)\"", text)
    expect(sorted(images) == [("agent", version), ("server", version)], f"images: {images}")
    expect(f"add: [{', '.join(CAPABILITIES)}]" in text, "capabilities of the agent")
    expect("privileged: true" not in text and "hostNetwork" not in text, "more than the agent needs")
    expect(text.count("readOnlyRootFilesystem: true") == 2, "root folders that can be written")
    for path in (DEPLOY / "kubernetes/kustomization.yaml", DEPLOY / "compose.yaml", DEPLOY / "helm/firn/Chart.yaml"):
        found = set(re.findall(r"(?:newTag: |firn-\w+:|ersion: )(\d[\w.]*)", path.read_text()))
        expect(found == {version}, f"{path.name}: versions {found}")
    schema = json.loads((DEPLOY / "helm/firn/values.schema.json").read_text())
    keys = set(re.findall(r"^(\w+):", (DEPLOY / "helm/firn/values.yaml").read_text(), re.M))
    expect(keys | {"global"} == set(schema["properties"]), f"schema: {keys ^ set(schema['properties'])}")


def check_helm():
    helm = os.environ.get("HELM") or shutil.which("helm")
    if not helm:
        print("helm is not here: the chart was not read by it")
        return
    chart = str(DEPLOY / "helm/firn")
    linted = run(helm, "lint", "--strict", chart)
    expect(linted.returncode == 0, f"helm lint: {linted.stdout}")
    made = run(helm, "template", "firn", chart, "--namespace", "firn", "--kube-version", "1.34.0")
    plain = re.sub(r"^# Source:.*\n", "", made.stdout, flags=re.M)
    expect(plain == (DEPLOY / "kubernetes/firn.yaml").read_text(),
           "deploy/kubernetes/firn.yaml is not the chart's: deploy/kubernetes/generate")
    wrong = run(helm, "template", "firn", chart, "--kube-version", "1.34.0", "--set", "server.retenton=1")
    expect("retenton" in wrong.stderr and wrong.returncode, "a wrong value was taken")


def main():
    check_metrics()
    check_promtool()
    check_manifest()
    check_helm()
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
