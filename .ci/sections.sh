# Sections for .ci/run and .ci/full, which source this file. A section is a function `section_NAME`. It runs in a shell
# of its own that stops at the first error; its end says the verdict: 0 passed, 77 skipped, anything else failed.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
# Outside the clone, so that clones share what is built.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-${HOME:-/tmp}/.cache/powersweep-target}
# No build here is edited and built again: incremental files would only cost time and disk.
export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0} CARGO_TERM_COLOR=never
# Messages of failed tests say what is wrong, with backtraces nobody finds them.
export RUST_BACKTRACE=0
if [ -z "${POWERSWEEP_TRACES:-}" ] && [ -d ../shared/traces ]; then
    POWERSWEEP_TRACES=$(cd ../shared/traces && pwd)
    export POWERSWEEP_TRACES
fi
# Settings of whoever calls would change what the checks see.
unset POWERSWEEP_DATA POWERSWEEP_COORDINATOR POWERSWEEP_TOKEN POWERSWEEP_TOKEN_FILE POWERSWEEP_LISTEN

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

# note TEXT: a line below the verdict.
note() {
    printf '%s\n' "$*" >>"$SCRATCH/notes"
}

# build_release: the binary that users get, built once for all sections.
build_release() {
    cargo build --release --locked --package powersweep
}

# Tests find the Python of the section `python` also when that section ran at another time.
use_python() {
    if [ -z "${POWERSWEEP_PYTHON:-}" ] && cmp -s "$REQUIREMENTS" "$VENV/installed.txt"; then
        export POWERSWEEP_PYTHON=$VENV/bin/python
    fi
}

clock() {
    printf '%d:%02d' $(($1 / 60)) $(($1 % 60))
}

# excerpt LOG: what failed tests printed, if there are any, else the end.
excerpt() {
    awk '/^failures:$/ { inside = 1 } /^test result:/ { inside = 0 } inside' "$1" | head -n $LOG_LINES_SHOWN | grep . ||
        tail -n $LOG_LINES_SHOWN "$1"
}

passed=0 failed=0 skipped=0

run_section() {
    local name=$1 log=$LOGS/$1.log begin=$SECONDS status verdict
    rm -f "$SCRATCH/reason" "$SCRATCH/notes"
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
    printf '%-8s %-14s %6s' "$verdict" "$name" "$(clock $((SECONDS - begin)))"
    if [ $status -eq 77 ]; then
        printf '  %s' "$(cat "$SCRATCH/reason" 2>/dev/null || tail -n 1 "$log")"
    fi
    printf '\n'
    [ ! -f "$SCRATCH/notes" ] || sed 's/^/         | /' "$SCRATCH/notes"
    if [ $verdict = FAILED ]; then
        printf '         status %s, the log is %s; of its end:\n' "$status" "$log"
        excerpt "$log" | cut -c 1-400 | sed 's/^/         > /'
    fi
}

# run_sections ALL... -- CHOSEN...: runs the chosen sections, all if none is chosen, in the order of ALL; then counts.
run_sections() {
    local all=() name wanted
    while [ "$1" != -- ]; do
        all+=("$1")
        shift
    done
    shift
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
        run_section "$name"
    done
    printf 'all sections took %s\n' "$(clock $SECONDS)"
    printf '%d passed, %d failed, %d skipped\n' $passed $failed $skipped
    [ $failed -eq 0 ]
}
