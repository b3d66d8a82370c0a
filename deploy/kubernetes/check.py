#!/usr/bin/env python3
"""Checks built manifests beyond the schema of Kubernetes:
  check.py BINARY FILE...    BINARY: a powersweep, which knows the arguments that the manifests give
The rules of restricted pods, the network, and everything that two files must say alike. Needs PyYAML and jsonschema."""
import json
import pathlib
import subprocess
import sys

import jsonschema
import yaml

SCHEMAS = {"ScaledObject": "scaledobject.json"}
NAME, COMPONENT = "app.kubernetes.io/name", "app.kubernetes.io/component"
FARM_PORT, SCALER_PORT = 7450, 7451
VOLUMES = {"configMap", "emptyDir", "persistentVolumeClaim", "projected", "secret"}
HAND_BACK_S = 20

wrong = []


def expect(condition, where, words):
    if not condition:
        wrong.append(f"{where}: {words}")


def selects(selector, labels):
    """Whether a label selector matches labels."""
    equal = all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
    rules = selector.get("matchExpressions", [])
    return equal and all(rule["operator"] == "In" and labels.get(rule["key"]) in rule["values"] for rule in rules)


def seconds(text):
    return int(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]] if text else 0


def option(args, name):
    return args[args.index(name) + 1] if name in args else ""


class Manifests:
    def __init__(self, binary, path):
        self.binary, self.path = binary, path
        self.all = [document for document in yaml.safe_load_all(path.read_text()) if document]

    def of(self, *kinds):
        return [document for document in self.all if document["kind"] in kinds]

    def pods(self):
        return [(f"{self.path}: {d['kind']}/{d['metadata']['name']}", d["spec"]["template"])
                for d in self.of("StatefulSet", "Deployment", "Job")]

    def check(self):
        for document in self.all:
            self.schema(document)
            if document["kind"] != "Namespace":
                expect(document["metadata"].get("namespace") == "powersweep", self.path, f"{document['kind']} has another namespace")
        for where, pod in self.pods():
            self.restricted(where, pod["spec"])
            self.container(where, pod)
        self.network()
        self.coordinator()
        for scaled in self.of("ScaledObject"):
            self.scaled(scaled)
        for job in self.of("Job"):
            self.job(job["spec"])

    def schema(self, document):
        if document["kind"] not in SCHEMAS:
            return
        schema = json.loads((pathlib.Path(__file__).parent / "schemas" / SCHEMAS[document["kind"]]).read_text())
        for error in jsonschema.Draft7Validator(schema).iter_errors(document):
            wrong.append(f"{self.path}: {document['kind']}: {'.'.join(map(str, error.path))}: {error.message}")

    def restricted(self, where, spec):
        of_pod = spec.get("securityContext", {})
        expect(of_pod.get("runAsNonRoot") is True and of_pod.get("runAsUser", 0) > 0, where, "may run as root")
        expect(of_pod.get("seccompProfile", {}).get("type") == "RuntimeDefault", where, "has no seccomp profile")
        expect(spec.get("automountServiceAccountToken") is False, where, "has a token of the cluster")
        expect(not any(spec.get(key) for key in ("hostNetwork", "hostPID", "hostIPC")), where, "shares the host's name spaces")
        for volume in spec.get("volumes", []):
            expect(set(volume) - {"name"} <= VOLUMES, where, f"volume {volume['name']} is not allowed")
        for container in spec["containers"] + spec.get("initContainers", []):
            own = container.get("securityContext", {})
            expect(own.get("allowPrivilegeEscalation") is False, where, "may gain privileges")
            expect(own.get("capabilities") == {"drop": ["ALL"]}, where, "has capabilities")
            expect(own.get("readOnlyRootFilesystem") is True, where, "may write into its image")
            expect("memory" in container.get("resources", {}).get("limits", {}), where, "has no limit of memory")
            expect("requests" in container.get("resources", {}), where, "requests nothing")

    def container(self, where, pod):
        [container] = pod["spec"]["containers"]
        version = subprocess.run([self.binary, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
        expect(container["image"].endswith(f"powersweep:{version}"), where, f"image {container['image']}, version {version}")
        for args in [container["args"], *self.probes(container)]:
            known = subprocess.run([self.binary, *args, "--help"], capture_output=True, text=True)
            expect(known.returncode == 0, where, f"arguments {args}: {known.stderr.strip()}")
        if pod["metadata"]["labels"][COMPONENT] == "worker":
            self.worker(where, pod["spec"], container)

    def probes(self, container):
        found = [container[name].get("exec", {}).get("command") for name in ("startupProbe", "readinessProbe") if name in container]
        expect(all(command[0] == "/powersweep" for command in found), self.path, "a probe runs another program")
        return [command[1:] for command in found]

    def worker(self, where, spec, container):
        drain = seconds(option(container["args"], "--drain-limit"))
        expect(spec["terminationGracePeriodSeconds"] == drain + HAND_BACK_S, where, f"the grace period is not {drain + HAND_BACK_S} s")
        access = next(volume for volume in spec["volumes"] if volume["name"] == "access")["secret"]
        expect(access["secretName"] == "powersweep-worker" and access["defaultMode"] == 0o440, where, "the access file is not closed")
        expect(spec["securityContext"]["fsGroup"] == spec["securityContext"]["runAsGroup"], where, "the access file's group differs")
        mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
        for name in ("--access", "--cache"):
            expect(any(option(container["args"], name).startswith(mount + "/") for mount in mounts), where, f"{name} is on no volume")
        expect(not any("livenessProbe" in key for key in container), where, "has a probe without a port")
        cpu = container["resources"]["limits"]["cpu"]
        expect(cpu.isdigit() and cpu == container["resources"]["requests"]["cpu"], where, "has no whole processors of its own")

    def network(self):
        policies = [policy["spec"] for policy in self.of("NetworkPolicy")]
        for where, pod in self.pods():
            mine = [policy for policy in policies if selects(policy["podSelector"], pod["metadata"]["labels"])]
            closed = [p for p in mine if not p.get("ingress") and not p.get("egress") and set(p["policyTypes"]) == {"Ingress", "Egress"}]
            expect(closed, where, "its traffic is not denied by default")
            ports = lambda rules: {port["port"] for rule in rules for port in rule["ports"]}
            entering = ports([rule for policy in mine for rule in policy.get("ingress", [])])
            leaving = ports([rule for policy in mine for rule in policy.get("egress", [])])
            if pod["metadata"]["labels"][COMPONENT] == "worker":
                expect(not entering and leaving == {53, FARM_PORT}, where, f"open ports: in {entering}, out {leaving}")
            else:
                scaler = {SCALER_PORT} if self.of("ScaledObject") else set()
                expect(entering == {FARM_PORT} | scaler, where, f"open ports: in {entering}")
                expect(leaving - {443} == {53}, where, f"open ports: out {leaving}")
            for rule in [rule for policy in mine for rule in policy.get("ingress", [])]:
                if SCALER_PORT in ports([rule]):
                    namespaces = [source["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] for source in rule["from"]]
                    expect(namespaces == ["keda"], where, f"the scaler's port is open to {namespaces}")

    def coordinator(self):
        [stateful] = self.of("StatefulSet")
        where = f"{self.path}: coordinator"
        pod, labels = stateful["spec"]["template"]["spec"], stateful["spec"]["template"]["metadata"]["labels"]
        expect(stateful["spec"]["replicas"] == 1, where, "more than one")
        expect(pod["securityContext"].get("fsGroupChangePolicy") == "OnRootMismatch", where, "its access files are opened at each start")
        [service] = self.of("Service")
        expect(service["spec"]["selector"] == labels and service["spec"]["publishNotReadyAddresses"] is True, where, "its Service differs")
        variables = {variable["name"]: variable.get("value") for variable in pod["containers"][0]["env"]}
        expect(variables["POWERSWEEP_ADVERTISE"] == f"{service['metadata']['name']}:{FARM_PORT}", where, "advertises another name")
        ports = {port["containerPort"] for port in pod["containers"][0]["ports"]}
        expect(ports == {port["port"] for port in service["spec"]["ports"]}, where, "its Service has other ports")
        expect(("POWERSWEEP_SCALER" in variables) == (SCALER_PORT in ports), where, "the scaler has no port")
        budgets = [budget["spec"]["selector"] for budget in self.of("PodDisruptionBudget")]
        for pod_of, pod in self.pods():
            covered = any(selects(budget, pod["metadata"]["labels"]) for budget in budgets)
            expect(covered == (pod["metadata"]["labels"] == labels), pod_of, "the disruption budget is the coordinator's alone")

    def scaled(self, scaled):
        where = f"{self.path}: ScaledObject"
        [target] = [d for d in self.of("Deployment") if d["metadata"]["name"] == scaled["spec"]["scaleTargetRef"]["name"]]
        expect("replicas" not in target["spec"], where, "the Deployment sets the number of workers, too")
        expect(scaled["spec"]["minReplicaCount"] == 0, where, "does not scale to zero")
        metadata = scaled["spec"]["triggers"][0]["metadata"]
        [service] = self.of("Service")
        address = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc:{SCALER_PORT}"
        expect(metadata["scalerAddress"] == address, where, f"asks at {metadata['scalerAddress']}, not {address}")
        limits = target["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
        expect(metadata["slotsPerWorker"] == limits["cpu"], where, "slotsPerWorker is not the number of processors of a worker")
        expect(int(metadata["maxWorkers"]) == scaled["spec"]["maxReplicaCount"], where, "maxWorkers is not maxReplicaCount")

    def job(self, spec):
        where = f"{self.path}: Job"
        container = spec["template"]["spec"]["containers"][0]
        expect(spec["suspend"] is True and "completions" not in spec, where, "Kueue cannot start it, or it counts workers")
        ignored = [rule for rule in spec["podFailurePolicy"]["rules"] if rule["action"] == "Ignore"]
        conditions = [condition["type"] for rule in ignored for condition in rule.get("onPodConditions", [])]
        codes = [code for rule in ignored for code in rule.get("onExitCodes", {}).get("values", [])]
        expect(conditions == ["DisruptionTarget"] and codes == [130], where, "counts interruptions as failures")
        expect({"--idle-limit", "--fail-on-signal"} <= set(container["args"]), where, "its workers do not end by themselves")
        expect(spec["template"]["spec"]["restartPolicy"] == "Never", where, "restarts pods in place")


def main():
    binary, *paths = sys.argv[1:]
    for path in paths:
        Manifests(binary, pathlib.Path(path)).check()
    print("\n".join(wrong) or f"{len(paths)} overlays keep the rules")
    sys.exit(bool(wrong))


main()
