#!/bin/bash
# Checks docker-compose.yml with a real daemon: a coordinator and four workers, a sweep submitted from outside. During the
# sweep one worker is killed, one loses its network for a while, and the coordinator restarts. Then an orderly end, and the
# rows are compared with those of a run without faults.
#   deploy/docker-check.sh [BINARY]      BINARY: a built powersweep; that of the release build by default
# Uses the running Docker daemon; if there is none, root starts a private one (installed by apt, if necessary). Exit status
# 77: skipped, without Docker.
#
# The image gets the existing binary instead of building it in a container, because a registry may be unreachable and a
# build takes minutes; `.ci/full image` checks the Dockerfile's own build. The Dockerfile's last stage is used word for
# word.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
BINARY=$(realpath -m "${1:-${CARGO_TARGET_DIR:-target}/release/powersweep}")
TASKS=20000

cannot() {
    echo "skipped: $*"
    exit 77
}

say() {
    echo "docker-check: $*"
}

fail() {
    say "FAILED: $*"
    exit 1
}

# --- A daemon -------------------------------------------------------------------------------------------------------

compose_found() {
    docker compose version >/dev/null 2>&1 || command -v docker-compose >/dev/null
}

if [ -z "${DOCKER_CHECK_PRIVATE:-}" ]; then
    [ -x "$BINARY" ] || fail "there is no binary $BINARY; cargo build --release --package powersweep-cli"
    if ! command -v docker >/dev/null || ! docker info >/dev/null 2>&1 || ! compose_found; then
        [ "$(id -u)" = 0 ] || cannot "no Docker daemon answers, and only root can start one"
        needed=()
        command -v docker >/dev/null && command -v dockerd >/dev/null || needed+=(docker.io)
        compose_found || needed+=(docker-compose)
        command -v ip >/dev/null || needed+=(iproute2)
        if [ ${#needed[@]} -gt 0 ]; then
            command -v apt-get >/dev/null || cannot "Docker is not installed, and there is no apt-get"
            { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${needed[@]}"; } \
                >/dev/null 2>&1 || cannot "apt-get cannot install ${needed[*]}"
        fi
        unshare --net --mount --pid --fork --mount-proc true 2>/dev/null || cannot "no name spaces for a Docker daemon here"
        export DOCKER_CHECK_PRIVATE=1
        exec deploy/private-docker.sh "$0" "$BINARY"
    fi
fi

# --- Start and clean-up ---------------------------------------------------------------------------------------------

scratch=$(mktemp -d "${TMPDIR:-/tmp}/powersweep-compose.XXXXXX")
project=powersweep-check-$$
export COMPOSE_PROJECT_NAME=$project POWERSWEEP_IMAGE=$project
# Port 0: Docker picks a free one.
export POWERSWEEP_PORT=0 POWERSWEEP_DATA_DIR=$scratch/data
unset POWERSWEEP_ACCESS POWERSWEEP_COORDINATOR
# The user `nobody`: no process in a container may need root.
export POWERSWEEP_USER=65534:65534
chmod 755 "$scratch"
mkdir -m 777 "$scratch/data"

compose() {
    if docker compose version >/dev/null 2>&1; then docker compose "$@"; else docker-compose "$@"; fi
}

finish() {
    local status=$?
    trap - EXIT
    [ $status -eq 0 ] || compose logs --tail 40 || true
    compose down --volumes --timeout 5 >/dev/null 2>&1 || true
    docker image rm --force "$project" >/dev/null 2>&1 || true
    rm -rf "$scratch"
    exit $status
}
trap finish EXIT
trap 'exit 130' INT TERM

# --- The image ------------------------------------------------------------------------------------------------------

build_image() {
    local image=$scratch/context/image library
    mkdir -p "$image/etc/ssl/certs"
    mkdir -m 1777 "$image/data" "$image/tmp"
    cp "$BINARY" "$image/powersweep"
    # The Dockerfile links statically; this binary needs its C library and loader in the image.
    for library in $(ldd "$BINARY" | grep -o '/[^ ]*' || true); do
        cp --dereference --parents "$library" "$image"
    done
    [ ! -f /etc/ssl/certs/ca-certificates.crt ] || cp /etc/ssl/certs/ca-certificates.crt "$image/etc/ssl/certs/"
    sed -n '/^FROM scratch/,$ s,^COPY --from=build /image ,COPY image ,p; /^FROM scratch/,$ { /^COPY/! p }' Dockerfile \
        >"$scratch/context/Dockerfile"
    DOCKER_BUILDKIT=0 docker build --tag "$project" "$scratch/context"
    docker image inspect --format "image: {{.Size}} bytes" "$project"
}

# --- Status of the farm ---------------------------------------------------------------------------------------------

status() {
    "$BINARY" status --coordinator "$address" "$@"
}

# done_tasks EXPERIMENT: number of done tasks.
done_tasks() {
    status "$1" --json | awk '$1 == "\"done\":" { print $2 + 0; exit }'
}

# wait_until SECONDS WHAT COMMAND...: tries until the command succeeds.
wait_until() {
    local seconds=$1 what=$2 begin=$SECONDS
    shift 2
    until "$@"; do
        [ $((SECONDS - begin)) -lt "$seconds" ] || fail "$what: not within $seconds s"
        sleep 0.2
    done
}

workers_connected() {
    [ "$(status | awk '$1 == "worker" { inside = 1; next } inside && NF { count++ } END { print count + 0 }')" -ge "$1" ]
}

some_done() {
    local count
    count=$(done_tasks compose-check)
    [ "${count:-0}" -ge "$1" ]
}

# facts_of_tasks DATA FILE: the rows of compose-check in order, without the columns of the run (worker, times).
facts_of_tasks() {
    "$BINARY" results compose-check --data "$1" --format csv | awk -F , '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i ~ /^(worker|attempt|started_at|wall_ms|engine_ms|parse_ms)$/) of_run[i] = 1 }
        { line = ""; for (i = 1; i <= NF; i++) if (!(i in of_run)) line = line "," $i; print line }' | sort >"$2"
}

# coordinator_address: where the coordinator's port is published now.
coordinator_address() {
    compose port coordinator 7450
}

# rows EXPERIMENT TASKS WORKERS: checks the rows in the mounted folder by another program.
rows() {
    if ! "${POWERSWEEP_PYTHON:-python3}" -c 'import duckdb' 2>/dev/null; then
        say "no duckdb (POWERSWEEP_PYTHON): rows of $1 are not counted"
        return
    fi
    "${POWERSWEEP_PYTHON:-python3}" - "$scratch/data/$1/tasks/*.parquet" "$2" "$3" <<'PYTHON' || fail "rows of $1"
import sys, duckdb
path, tasks, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
by_worker = dict(duckdb.sql(f"select worker, count(*) from '{path}' group by all").fetchall())
rows, distinct = duckdb.sql(f"select count(*), count(distinct task_id) from '{path}'").fetchall()[0]
print(f"docker-check: {rows} rows, {distinct} distinct tasks, {tasks} expected; by worker {by_worker}")
sys.exit(not (rows == distinct == tasks and len(by_worker) >= workers))
PYTHON
}

# --- The check ------------------------------------------------------------------------------------------------------

# The profiles need images of a registry, so their configuration alone is checked.
services=$(compose --profile metrics --profile s3 config --services | sort | xargs)
[ "$services" = "coordinator grafana prometheus store worker" ] || fail "services with profiles: $services"

build_image
say "$(docker version --format 'daemon {{.Server.Version}}'), $(compose version --short)"
begin=$SECONDS
compose up --detach --no-build --scale worker=4
address=$(coordinator_address)
started=$(docker ps --filter "label=com.docker.compose.project=$project" --format '{{.Label "com.docker.compose.service"}}')
[ "$(sort -u <<<"$started" | xargs)" = "coordinator worker" ] || fail "services without a profile: $started"
case $address in 127.0.0.1:*) ;; *) fail "the port is open to other machines: $address" ;; esac
# The access file belongs to the containers' user, and is closed to others: a copy for this one.
(umask 077 && cp "$scratch/data/.powersweep/access/client.json" "$scratch/client.json")
[ "$(stat --format %a "$scratch/data/.powersweep/access")" = 700 ] || fail "the access folder is open"
export POWERSWEEP_ACCESS=$scratch/client.json
say "up after $((SECONDS - begin)) s, coordinator at $address"
wait_until 60 "four workers connected" workers_connected 4

(umask 077 && sed 's/"token": "[^"]*"/"token": "guess"/' "$scratch/client.json" >"$scratch/forged.json")
"$BINARY" submit quickstart --coordinator "$address" --access "$scratch/forged.json" &&
    fail "a submission without the token was accepted"
submitted=$("$BINARY" submit quickstart --coordinator "$address" --wait)
say "$submitted"
quickstart=$(sed -n 's/^quickstart: \([0-9]*\) tasks.*/\1/p' <<<"$submitted")
[ "$(done_tasks quickstart)" = "$quickstart" ] || fail "quickstart: $(done_tasks quickstart) of $quickstart tasks done"

cat >"$scratch/compose-check.toml" <<TOML
version = 1
name = "compose-check"
seeds = { from = 1, count = $TASKS }

[workloads.synthetic]
source = "lublin"
synthetic_jobs_count = 2000

[policies.easy]
backfill = "easy"
TOML
"$BINARY" submit "$scratch/compose-check.toml" --coordinator "$address"
wait_until 120 "a tenth of the sweep done" some_done $((TASKS / 10))
workers=$(compose ps --quiet worker)
victim=$(sed -n 1p <<<"$workers") cut_off=$(sed -n 2p <<<"$workers")
docker kill "$victim" >/dev/null
docker network disconnect "${project}_default" "$cut_off"
say "killed a worker and cut another off after $(done_tasks compose-check) of $TASKS tasks"
wait_until 120 "a fifth of the sweep done" some_done $((TASKS / 5))
begin=$SECONDS
compose restart coordinator
address=$(coordinator_address)
wait_until 60 "the coordinator back" status
say "restarted the coordinator in $((SECONDS - begin)) s, after $(done_tasks compose-check) of $TASKS tasks"
wait_until 60 "two workers connected" workers_connected 2
docker network connect "${project}_default" "$cut_off"
wait_until 60 "the worker that was cut off connected" workers_connected 3
[ "$(done_tasks compose-check)" -lt $TASKS ] || fail "the sweep had ended before the last fault: make it longer"
"$BINARY" submit "$scratch/compose-check.toml" --coordinator "$address" --wait
status
[ "$(done_tasks compose-check)" = $TASKS ] || fail "compose-check: $(done_tasks compose-check) of $TASKS tasks done"

coordinator=$(compose ps --quiet coordinator)
begin=$SECONDS
compose stop
say "stopped after $((SECONDS - begin)) s"
for container in "$coordinator" "$cut_off" "$(sed -n 3p <<<"$workers")" "$(sed -n 4p <<<"$workers")"; do
    state=$(docker inspect --format '{{.State.ExitCode}}' "$container")
    [ "$state" = 0 ] || fail "$(docker inspect --format '{{.Name}}' "$container") ended with status $state"
done
[ $((SECONDS - begin)) -lt 30 ] || fail "the grace period was used up"
rows quickstart "$quickstart" 1
rows compose-check $TASKS 3
begin=$SECONDS
"$BINARY" run "$scratch/compose-check.toml" --data "$scratch/undisturbed" --quiet
say "the run without faults took $((SECONDS - begin)) s"
facts_of_tasks "$scratch/data" "$scratch/rows.csv"
facts_of_tasks "$scratch/undisturbed" "$scratch/undisturbed.csv"
[ "$(wc -l <"$scratch/rows.csv")" = $((TASKS + 1)) ] || fail "$(wc -l <"$scratch/rows.csv") lines of rows"
cmp "$scratch/rows.csv" "$scratch/undisturbed.csv" || fail "the rows differ from those of a run without faults"
compose down --volumes
[ -z "$(docker ps --all --quiet --filter "label=com.docker.compose.project=$project")" ] || fail "containers are left"
say "four workers, one killed, one cut off, the coordinator restarted: $quickstart + $TASKS rows equal an undisturbed run's"
