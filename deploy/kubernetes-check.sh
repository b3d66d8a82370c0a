#!/bin/bash
# Builds the overlays in deploy/kubernetes and checks them: by the schema of Kubernetes, strictly, and by check.py.
#   deploy/kubernetes-check.sh BINARY      BINARY: a built powersweep
# Needs kustomize or kubectl, and POWERSWEEP_PYTHON with kubernetes-validate. Exit status 77: skipped. No cluster is used.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
BINARY=$(realpath "$1")
# The oldest and the newest schema.
VERSIONS="1.29 1.37"

cannot() {
    echo "skipped: $*"
    exit 77
}

fail() {
    echo "kubernetes-check: FAILED: $*"
    exit 1
}

build() {
    if command -v kustomize >/dev/null; then kustomize build "$1"; else kubectl kustomize "$1"; fi
}

python=${POWERSWEEP_PYTHON:-python3}
command -v kustomize >/dev/null || command -v kubectl >/dev/null || cannot "there is neither kustomize nor kubectl"
"$python" -c 'import kubernetes_validate, yaml, jsonschema' || cannot "no kubernetes-validate (POWERSWEEP_PYTHON)"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/powersweep-kubernetes.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# The component for object stores is part of no overlay: one that has it is made here.
cp -r deploy/kubernetes "$scratch/tree"
mkdir "$scratch/tree/overlays/stored"
cat >"$scratch/tree/overlays/stored/kustomization.yaml" <<'YAML'
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: powersweep
resources:
  - ../fixed
components:
  - ../../components/object-store
YAML

# valid VERSION FILE: whether every object keeps the schema.
valid() {
    "$python" -m kubernetes_validate --strict --quiet --kubernetes-version "$1" "$2" >"$scratch/verdict" 2>&1 || return 1
    # KEDA's ScaledObject is not in the schema: check.py has a schema of its own for it.
    ! grep -v 'kind ScaledObject' "$scratch/verdict"
}

# sound FILE...: whether they keep the rules of check.py.
sound() {
    "$python" "$scratch/tree/check.py" "$BINARY" "$@" >"$scratch/verdict" 2>&1
}

for overlay in fixed keda kueue stored; do
    build "$scratch/tree/overlays/$overlay" >"$scratch/$overlay.yaml"
    for version in $VERSIONS; do
        valid "$version" "$scratch/$overlay.yaml" || { cat "$scratch/verdict"; fail "$overlay, Kubernetes $version"; }
    done
    sound "$scratch/$overlay.yaml" || { cat "$scratch/verdict"; fail "$overlay"; }
done
grep -q 's3://' "$scratch/stored.yaml" || fail "the component object-store changes nothing"

# The checks notice what they are for.
refused=0
refuses() {
    local overlay=$1 check=$2 change=$3
    sed "$change" "$scratch/$overlay.yaml" >"$scratch/changed.yaml"
    cmp -s "$scratch/$overlay.yaml" "$scratch/changed.yaml" && fail "$overlay has nothing for $change"
    case $check in
    valid) ! valid 1.37 "$scratch/changed.yaml" || fail "the schema accepts $overlay with $change" ;;
    sound) ! sound "$scratch/changed.yaml" || fail "check.py accepts $overlay with $change" ;;
    esac
    grep -q Traceback "$scratch/verdict" && { cat "$scratch/verdict"; fail "check.py breaks at $change"; }
    refused=$((refused + 1))
}
refuses fixed valid 's/minAvailable: 1/minAvialable: 1/'
refuses kueue valid 's/suspend: true/suspended: true/'
refuses fixed valid 's/periodSeconds: 5/periodSeconds: five/'
refuses fixed sound 's/readOnlyRootFilesystem: true/readOnlyRootFilesystem: false/'
refuses fixed sound 's/runAsNonRoot: true/runAsNonRoot: false/'
refuses fixed sound 's/terminationGracePeriodSeconds: 80/terminationGracePeriodSeconds: 60/'
refuses fixed sound 's/--drain-limit/--drain-limits/'
refuses fixed sound 's/OnRootMismatch/Always/'
refuses fixed sound 's/image: powersweep:.*/image: powersweep:0.0.0/'
refuses fixed sound 's/port: 7450/port: 7452/'
refuses fixed sound 's/- Egress/- Ingress/'
refuses keda sound 's/metadata.name: keda/metadata.name: default/'
refuses keda sound 's/slotsPerWorker: "4"/slotsPerWorker: "8"/'
refuses keda sound 's/pollingInterval/pollInterval/'
refuses keda sound 's/powersweep-coordinator.powersweep.svc:7451/powersweep-coordinator.powersweep.svc:7450/'
refuses kueue sound 's/--fail-on-signal/--insecure/'
refuses kueue sound 's/- 130/- 1/'
refuses kueue sound 's/DisruptionTarget/Disrupted/'
echo "4 overlays keep the schemas of Kubernetes ${VERSIONS/ / and } and the rules, $refused wrong ones are refused"
