# Sections for .ci/run and .ci/full, which source this file. A section is a function `section_NAME`. It runs in a shell
# of its own that stops at the first error. Its exit status is the verdict: 0 passed, 77 skipped, any other failed.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
# Outside the clone, so that clones share their builds.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-${HOME:-/tmp}/.cache/powersweep-target}
# Incremental files would only cost time and disk: no build here follows an edit.
export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0} CARGO_TERM_COLOR=never
# Backtraces would hide the messages of failed tests.
export RUST_BACKTRACE=0
for folder in traces joblogs signals; do
    variable=POWERSWEEP_${folder^^}
    if [ -z "${!variable:-}" ] && [ -d "../shared/$folder" ]; then
        export "$variable=$(cd "../shared/$folder" && pwd)"
    fi
done
# A test is compiled as ignored where a variable that it needs is not set. An empty one counts as set there.
for variable in POWERSWEEP_{TRACES,JOBLOGS,SIGNALS,PYTHON}; do
    [ -n "${!variable:-}" ] || unset "$variable"
done
# The caller's settings would change the checks.
unset POWERSWEEP_DATA POWERSWEEP_COORDINATOR POWERSWEEP_ACCESS POWERSWEEP_INSECURE POWERSWEEP_LISTEN POWERSWEEP_ADVERTISE

RELEASE_BINARY=$CARGO_TARGET_DIR/release/powersweep
LOGS=$CARGO_TARGET_DIR/ci-logs
VENV=$CARGO_TARGET_DIR/ci-venv
REQUIREMENTS=results/tests/requirements.txt
mkdir -p "$LOGS" || exit 1
SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/powersweep-ci.XXXXXX") || exit 1
trap 'rm -rf "$SCRATCH"' EXIT

# Lines of a failing section's log that are shown; the whole log stays in $LOGS.
LOG_LINES_SHOWN=150

# skip REASON: ends the section as skipped.
skip() {
    printf '%s\n' "$*" >"$SCRATCH/reason"
    exit 77
}

# note TEXT: adds lines below the verdict.
note() {
    printf '%s\n' "$*" >>"$SCRATCH/notes"
}

# build_release: builds the binary that users get, once for all sections.
build_release() {
    cargo build --release --locked --package powersweep-cli
}

# Makes the Python of the section `python` available, also if that section ran earlier.
use_python() {
    if [ -z "${POWERSWEEP_PYTHON:-}" ] && cmp -s "$REQUIREMENTS" "$VENV/installed.txt"; then
        export POWERSWEEP_PYTHON=$VENV/bin/python
    fi
}

# install_for PROGRAM PACKAGES...: installs Debian packages unless the program is there.
install_for() {
    local program=$1
    shift
    command -v "$program" >/dev/null && return
    [ "$(id -u)" -eq 0 ] && command -v apt-get || skip "there is no $program (Debian: apt-get install $*)"
    apt-get install -y --no-install-recommends "$@" || skip "there is no $program, and apt-get install $* fails"
}

# install_tool NAME VERSION: makes a program of the crate registry available, in a folder that later runs share.
install_tool() {
    local tools=$CARGO_TARGET_DIR/ci-tools
    export PATH=$PATH:$tools/bin
    command -v "$1" && return
    cargo install --locked --version "$2" --root "$tools" --target-dir "$tools-build" "$1" ||
        skip "$1 is not installed, and cargo install $1 fails"
}

# python_package [OPTION...]: builds the wheel with these options of pip, in an environment of its own without pyarrow, and
# runs its tests, the code of docs/python.md and the notebook; then the tests with pyarrow and pandas, in the environment of
# the section `python`. The wheel stays in $SCRATCH/wheels.
python_package() {
    local environment=$CARGO_TARGET_DIR/ci-venv-package requirements=python/tests/requirements.txt
    command -v python3 || skip "there is no python3"
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || skip "$(python3 --version) is older than 3.11"
    if ! cmp -s "$requirements" "$environment/installed.txt"; then
        rm -rf "$environment"
        python3 -m venv "$environment" || skip "python3 -m venv fails (Debian: apt-get install python3-venv)"
        "$environment/bin/pip" --disable-pip-version-check --quiet install --requirement "$requirements" ||
            skip "pip cannot install $requirements: $(grep -m 1 '^ERROR' "$log")"
        cp "$requirements" "$environment/installed.txt"
    fi
    export PATH=$environment/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1
    # Their tests say that they are skipped where a package is missing.
    local optimisers=python/tests/requirements-optimisers.txt
    cmp -s "$optimisers" "$environment/optimisers.txt" ||
        { pip install --quiet --requirement "$optimisers" && cp "$optimisers" "$environment/optimisers.txt"; } ||
        note "the adapters are not tested: pip cannot install $optimisers"
    pip wheel --no-deps --no-build-isolation --wheel-dir "$SCRATCH/wheels" "$@" ./python
    pip install --no-deps --force-reinstall "$SCRATCH"/wheels/*.whl
    mypy --strict --package powersweep
    python -m mypy.stubtest powersweep._native
    POWERSWEEP_WITHOUT_PYARROW=1 python -m unittest discover --verbose --start-directory python/tests 2>&1 | tee "$SCRATCH/tests"
    note "without pyarrow: $(grep '^Ran ' "$SCRATCH/tests")"
    note "$(grep -o 'import powersweep: .*' "$SCRATCH/tests")"
    if [ -z "${POWERSWEEP_PYTHON:-}" ]; then
        note "not tested with pyarrow and pandas: there is no Python with $REQUIREMENTS"
        return
    fi
    pip install --no-deps --target "$SCRATCH/package" "$SCRATCH"/wheels/*.whl
    PYTHONPATH=$SCRATCH/package "$POWERSWEEP_PYTHON" -m unittest discover --verbose --start-directory python/tests \
        --pattern test_rows.py 2>&1 | tee "$SCRATCH/tests"
    note "with pyarrow and pandas: $(grep '^Ran ' "$SCRATCH/tests")"
}

# in_slurm [--accounting]: the tests that need Slurm, in a private one.
in_slurm() {
    # The selection of the section `tests`: another one would build most crates again with other features.
    local tests=(cargo test --locked --workspace --features cloud,figures,wasm --test it)
    install_for slurmctld munge slurmctld slurmd slurm-client
    unshare --mount --uts --pid --net --fork true || skip "a private Slurm needs root, and a machine that allows name spaces"
    "${tests[@]}" --no-run
    deploy/private-slurm.sh "$@" "${tests[@]}" --offline fire::slurm:: -- --show-output --test-threads 1 \
        ${POWERSWEEP_LONG:+--include-ignored} | tee "$SCRATCH/slurm"
    note "$(grep -E '^skipped|submissions?|nodes at a time|two workers|states of|equal the undisturbed' "$SCRATCH/slurm")"
    grep -q 'rows of the table jobs equal' "$SCRATCH/slurm"
}

clock() {
    printf '%d:%02d' $(($1 / 60)) $(($1 % 60))
}

# excerpt LOG: the output of failed tests, if there are any, else the end.
excerpt() {
    awk '/^failures:$/ { inside = 1 } /^test result:/ { inside = 0 } inside' "$1" | head -n $LOG_LINES_SHOWN | grep . ||
        tail -n $LOG_LINES_SHOWN "$1"
}

passed=0 failed=0 skipped=0 earlier=0

# build_book: builds the guide as a book and checks its links, by mdbook in PATH or in the tools of .ci/full.
build_book() {
    export PATH=$PATH:$CARGO_TARGET_DIR/ci-tools/bin
    command -v mdbook || skip "mdbook is not installed; .ci/full book installs it"
    cargo xtask book | tee "$SCRATCH/book"
    note "$(tail -n 1 "$SCRATCH/book")"
}

# check_crates: advisories, licences, bans and sources of the crates in Cargo.lock, by cargo-deny in PATH or in the tools of
# .ci/full.
check_crates() {
    export PATH=$PATH:$CARGO_TARGET_DIR/ci-tools/bin
    command -v cargo-deny || skip "cargo-deny is not installed; .ci/full deny installs it"
    cargo deny --locked check bans licenses sources
    note "bans, licences and sources of $(grep -c '^name = ' Cargo.lock) crates are in order"
    # The database of advisories is a git repository, which some networks do not reach.
    if cargo deny --locked fetch db; then
        cargo deny --locked check --disable-fetch advisories
        note "no advisory applies"
    else
        note "advisories were not checked: their database cannot be fetched"
    fi
}

# check_papers FOLDER [PAPER...]: checks the claims of every paper, with rows in FOLDER; of the named papers only demanded
# claims.
check_papers() {
    local folder=$1 paper status before failed=0 ran=0 demanded
    shift
    build_release
    for paper in $("$RELEASE_BINARY" check --list | awk 'NR > 1 { print $1 }'); do
        case " $* " in *" $paper "*) demanded=--demanded ;; *) demanded= ;; esac
        status=0
        before=$SECONDS
        "$RELEASE_BINARY" check "$paper" $demanded --data "$folder" --quiet 2>"$SCRATCH/verdict" || status=$?
        cat "$SCRATCH/verdict"
        case $status in
        0) ran=1 && note "$paper: $(tail -n 1 "$SCRATCH/verdict") ($((SECONDS - before)) s)" ;;
        4) note "$paper: skipped, a log is not in POWERSWEEP_TRACES" ;;
        *) failed=1 && note "$paper: $(tail -n 1 "$SCRATCH/verdict")" ;;
        esac
    done
    [ $ran -eq 1 ] || return 1
    return $failed
}

# With RESUMABLE=1 (.ci/full), a section that has passed does not run again on the same commit with the same settings, if
# the clone has no changes. Passed sections are recorded outside the clone.
RESUMABLE=0
STATE=

# find_state: sets STATE, the folder that records sections passed on this commit; empty if there is no record.
find_state() {
    local settings
    STATE=
    [ "$RESUMABLE" -eq 1 ] || return 0
    if [ -n "$(git status --porcelain)" ]; then
        say "the clone has changes that are not committed: every section runs, and none is recorded as passed"
        return 0
    fi
    # The paths of logs, signals and Python do not change a test.
    settings=$(env | grep '^POWERSWEEP_' | grep -vE '^POWERSWEEP_(TRACES|JOBLOGS|SIGNALS|PYTHON|BIN)=' | sort | cksum)
    STATE=$CARGO_TARGET_DIR/ci-state/$(git rev-parse HEAD)-${settings%% *}
    mkdir -p "$STATE"
}

# say TEXT: prints a line on the screen and in the summary, which can be quoted.
say() {
    printf '%s\n' "$*" | tee -a "$SUMMARY"
}

# was_passed NAME: shows the verdict of an earlier run, if the section passed there.
was_passed() {
    [ -n "$STATE" ] && [ -f "$STATE/$1" ] || return 1
    passed=$((passed + 1)) earlier=$((earlier + 1))
    tee -a "$SUMMARY" <"$STATE/$1"
}

# report NAME STATUS SECONDS LOG VERDICT: prints verdict, notes and, after a failure, an excerpt of the log.
report() {
    local name=$1 status=$2 seconds=$3 log=$4 verdict=$5
    printf '%-8s %-14s %6s' "$verdict" "$name" "$(clock "$seconds")"
    if [ "$status" -eq 77 ]; then
        printf '  %s' "$(cat "$SCRATCH/reason" 2>/dev/null || tail -n 1 "$log")"
    fi
    printf '\n'
    [ ! -f "$SCRATCH/notes" ] || sed 's/^/         | /' "$SCRATCH/notes"
    if [ "$verdict" = FAILED ]; then
        printf '         status %s, the log is %s; its end:\n' "$status" "$log"
        excerpt "$log" | cut -c 1-400 | sed 's/^/         > /'
    fi
}

run_section() {
    local name=$1 log=$LOGS/$1.log begin=$SECONDS status verdict
    rm -f "$SCRATCH/reason" "$SCRATCH/notes"
    [ -z "$STATE" ] || rm -f "$STATE/$name"
    use_python
    printf '%-8s %-14s\n' running "$name"
    (
        set -euo pipefail
        "section_$name"
    ) >"$log" 2>&1 </dev/null
    status=$?
    case $status in
    0) verdict=passed passed=$((passed + 1)) ;;
    77) verdict=skipped skipped=$((skipped + 1)) ;;
    *) verdict=FAILED failed=$((failed + 1)) ;;
    esac
    report "$name" $status $((SECONDS - begin)) "$log" $verdict | tee "$SCRATCH/report"
    cat "$SCRATCH/report" >>"$SUMMARY"
    if [ $status -eq 0 ] && [ -n "$STATE" ]; then
        # The date distinguishes a verdict of an earlier run from one of this run.
        sed "1s/\$/  (on $(date -u '+%Y-%m-%d %H:%M') UTC)/" "$SCRATCH/report" >"$STATE/$name"
    fi
}

# run_sections ALL... -- [--again] CHOSEN...: runs the chosen sections, or all, in the order of ALL; then prints counts.
# --again also runs sections that have passed before.
run_sections() {
    local all=() name wanted
    while [ "$1" != -- ]; do
        all+=("$1")
        shift
    done
    shift
    local again=0
    if [ "${1:-}" = --again ]; then
        again=1
        shift
    fi
    SUMMARY=$LOGS/$(basename "$0").summary
    : >"$SUMMARY"
    say "$(basename "$0") at $(git describe --always --dirty --abbrev=12), $(date -u '+%Y-%m-%d %H:%M') UTC, $(nproc) processors"
    find_state
    for wanted in "$@"; do
        case " ${all[*]} " in
        *" $wanted "*) ;;
        *)
            printf 'there is no section %s; sections: %s\n' "$wanted" "${all[*]}" >&2
            exit 2
            ;;
        esac
    done
    for name in "${all[@]}"; do
        if [ $# -gt 0 ]; then
            case " $* " in *" $name "*) ;; *) continue ;; esac
        fi
        if [ $again -eq 1 ] || ! was_passed "$name"; then
            run_section "$name"
        fi
    done
    say "all sections took $(clock $SECONDS)"
    say "$passed passed$([ $earlier -eq 0 ] || echo " ($earlier of them before)"), $failed failed, $skipped skipped"
    printf 'these lines are in %s\n' "$SUMMARY"
    [ $failed -eq 0 ]
}
