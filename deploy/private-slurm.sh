#!/bin/bash
# Runs a command with a private Slurm of four nodes with eight pretended processors each. The cluster ends with the command:
#   deploy/private-slurm.sh [--accounting] COMMAND...
# The command finds the cluster by SLURM_CONF, and the folder of the daemons' process ids by SLURM_PIDS (nN.pid, slurmctld.pid).
# --accounting: with a database, the default QOS `normal`, and the QOS `narrow` of at most two submitted jobs.
# Needs root and unshare, and of Debian munge, slurmctld, slurmd, slurm-client; --accounting also slurmdbd and mariadb-server.
#
# Partitions: `low` (default), whose jobs are requeued when a job in `high` needs their nodes; `spot`, whose jobs are
# cancelled instead. Jobs get 5 s between the signal and the end.
#
# The daemons run in their own name spaces for processes, mounts and network. So the kernel ends every daemon and job with
# the command, also after a crash, and no port of the machine is used.
set -euo pipefail
NODES=4
CPUS=8

# await SECONDS COMMAND...: waits until a command succeeds.
await() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        if [ $SECONDS -ge $end ]; then
            echo "this did not succeed in time: $*" >&2
            tail -n 5 "$folder"/log/* >&2
            return 1
        fi
        sleep 0.1
    done
}

write_configuration() {
    local accounting=accounting_storage/none
    [ "$accounts" -eq 0 ] || accounting=accounting_storage/slurmdbd
    cat >"$folder/slurm.conf" <<CONF
ClusterName=private
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
MaxArraySize=1001
MinJobAge=300
KillWait=2
MessageTimeout=10
SlurmdTimeout=5
SlurmctldTimeout=10
AccountingStorageType=$accounting
AccountingStorageHost=127.0.0.1
AccountingStoragePass=$folder/munge/socket
$([ "$accounts" -eq 0 ] || echo AccountingStorageEnforce=associations,limits,qos)
StateSaveLocation=$folder/state
SlurmctldPidFile=$folder/pids/slurmctld.pid
SlurmctldLogFile=$folder/log/slurmctld
SlurmctldPort=6817
SlurmdSpoolDir=$folder/spool/%n
SlurmdPidFile=$folder/pids/%n.pid
SlurmdLogFile=$folder/log/%n
NodeName=n[1-$NODES] NodeHostname=$host NodeAddr=127.0.0.1 Port=[6901-$((6900 + NODES))] CPUs=$CPUS RealMemory=4096
PartitionName=low Nodes=ALL Default=YES PriorityTier=1 PreemptMode=REQUEUE GraceTime=5
PartitionName=spot Nodes=ALL PriorityTier=1 PreemptMode=CANCEL GraceTime=5
PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF
CONF
}

start_database() {
    local database=$folder/database
    mariadb-install-db --no-defaults --user=root --datadir="$database" --auth-root-authentication-method=normal >/dev/null
    mariadbd --no-defaults --user=root --datadir="$database" --socket="$database/socket" --bind-address=127.0.0.1 \
        --pid-file="$database/pid" >"$folder/log/mariadbd" 2>&1 &
    await 60 mariadb-admin --no-defaults --socket="$database/socket" --user=root ping
    mariadb --no-defaults --socket="$database/socket" --user=root --execute \
        "create database slurm_acct_db; grant all on slurm_acct_db.* to 'slurm'@'127.0.0.1' identified by 'slurm'"
    cat >"$folder/slurmdbd.conf" <<CONF
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
DbdHost=localhost
DbdAddr=127.0.0.1
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StorageUser=slurm
StoragePass=slurm
PidFile=$folder/pids/slurmdbd.pid
LogFile=$folder/log/slurmdbd
CONF
    chmod 600 "$folder/slurmdbd.conf"
    slurmdbd
    await 60 sacctmgr --immediate list cluster
    sacctmgr --immediate add cluster private
    sacctmgr --immediate add qos narrow MaxSubmitJobsPerUser=2
    sacctmgr --immediate modify user root set qos=normal,narrow defaultqos=normal
} >&2

# all_idle: whether no node is lost or has a job.
all_idle() {
    [ "$(sinfo --noheader --Node --partition low --format %T | grep -cx idle)" -eq $NODES ]
}

inside() {
    local accounts=$1 folder=$2 host node
    shift 2
    host=private
    ip link set lo up
    # The C library resolves no name where 127.0.0.1 is the only address.
    ip address add 127.0.0.2/8 dev lo
    mkdir -p "$folder"/{log,pids,state,munge}
    # Slurm looks its own machine up by name, also where no name server answers.
    hostname $host
    echo "127.0.0.1 localhost $host" >"$folder/hosts"
    mount --bind "$folder/hosts" /etc/hosts
    chmod 755 "$folder" "$folder/munge"
    dd if=/dev/urandom of="$folder/munge/key" bs=128 count=1 status=none
    chmod 600 "$folder/munge/key"
    munged --force --key-file="$folder/munge/key" --socket="$folder/munge/socket" --pid-file="$folder/pids/munged.pid" \
        --log-file="$folder/log/munged" --seed-file="$folder/munge/seed" 2>/dev/null
    export SLURM_CONF=$folder/slurm.conf SLURM_PIDS=$folder/pids
    write_configuration
    [ "$accounts" -eq 0 ] || start_database
    slurmctld -i
    for ((node = 1; node <= NODES; node++)); do
        mkdir -p "$folder/spool/n$node"
        slurmd -N "n$node"
    done
    await 60 all_idle
    "$@"
}

if [ "${1:-}" = inside ]; then
    shift
    inside "$@"
    exit
fi

accounts=0
if [ "$1" = --accounting ]; then
    accounts=1
    shift
fi
folder=$(mktemp -d "${TMPDIR:-/tmp}/powersweep-slurm.XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
unshare --mount --uts --pid --net --fork --mount-proc --kill-child "$0" inside $accounts "$folder" "$@"
