#!/bin/sh
# A Slurm cluster of one node on this machine, from Debian's packages, for the tests in this folder.
#
#   tests/cluster/slurm.sh up       install what is missing, configure, start; twice does no harm
#   tests/cluster/slurm.sh status   what the cluster says of itself; fails where it does not run
#   tests/cluster/slurm.sh down     stop it and remove what `up` made; the packages stay (--purge: they go too)
#
# As root, on Debian or Ubuntu; a container needs no privileges. A Slurm that is configured already is left alone.
set -eu

CONF=/etc/slurm/slurm.conf
GRES=/etc/slurm/gres.conf
STATE=/var/lib/slurm-of-one-node
MARK='# Made by tests/cluster/slurm.sh'
# Everything on the cluster gives way to whatever else this machine does.
GENTLY='nice -n 19'

say() { echo "tests/cluster/slurm.sh: $*" >&2; }
ours() { [ -f "$CONF" ] && head -n 1 "$CONF" | grep -q "^$MARK"; }
ready() { sinfo --noheader --format=%T 2>/dev/null | grep -Eq 'idle|mixed|allocated'; }

must_be_root() {
  [ "$(id -u)" = 0 ] && return
  say "installing and starting Slurm needs root. Run it as root, or in a container, where you are:"
  say "  docker run --rm -it -v \"\$PWD\":/project -w /project python:3.11-bookworm make test-cluster"
  exit 1
}

install_packages() {
  command -v slurmd >/dev/null && command -v slurmctld >/dev/null && command -v munged >/dev/null && return
  command -v apt-get >/dev/null || { say "no apt-get here: install slurmctld, slurmd and munge yourself"; exit 1; }
  say "installing slurm-wlm and munge (about 20 s)"
  export DEBIAN_FRONTEND=noninteractive
  if ! { timeout 120 apt-get update -qq && timeout 300 apt-get install -y -qq --no-install-recommends slurm-wlm munge >/dev/null; }; then
    say "the packages cannot be installed: is there a network, and a mirror of the distribution?"
    exit 1
  fi
}

configure() {
  name=$(hostname -s)
  memory=$(slurmd -C | sed -n 's/.*RealMemory=\([0-9]*\).*/\1/p')
  mkdir -p "$STATE/controller" "$STATE/node" "$(dirname "$CONF")"
  cat >"$CONF" <<EOF
$MARK
ClusterName=one-node
SlurmctldHost=$name(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation=$STATE/controller
SlurmdSpoolDir=$STATE/node
SlurmctldPidFile=$STATE/slurmctld.pid
SlurmdPidFile=$STATE/slurmd.pid
SlurmctldLogFile=$STATE/slurmctld.log
SlurmdLogFile=$STATE/slurmd.log
# Nothing here asks for control groups or an accounting database, which a container has not.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
AccountingStorageType=accounting_storage/none
# Without control groups, a job over its memory is found by looking, every second.
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,sched_min_interval=0
# A job that has ended is known for so many seconds; squeue is the only one to ask.
MinJobAge=600
KillWait=5
ReturnToService=1
SlurmdTimeout=60
GresTypes=gpu
# One graphics card that there is not: enough to see that jobs ask for it.
NodeName=$name NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$memory Gres=gpu:1 State=UNKNOWN
PartitionName=main Nodes=$name Default=YES MaxTime=INFINITE State=UP
EOF
  printf '%s\nName=gpu File=/dev/null\n' "$MARK" >"$GRES"
}

start() {
  mkdir -p /run/munge /var/log/munge
  chown munge:munge /run/munge /var/log/munge
  [ -f /etc/munge/munge.key ] || { /usr/sbin/mungekey --create; chown munge:munge /etc/munge/munge.key; }
  if ! munge -n >/dev/null 2>&1; then
    $GENTLY runuser -u munge -- /usr/sbin/munged
    touch "$STATE/munged-is-ours"
  fi
  alive slurmctld || $GENTLY slurmctld -c
  alive slurmd || $GENTLY slurmd
  for _ in $(seq 60); do
    ready && return
    # A node that was down when it was last seen stays so until somebody says otherwise.
    scontrol update nodename="$(hostname -s)" state=resume 2>/dev/null || true
    sleep 0.5
  done
  say "the node is not ready after 30 s; see $STATE/slurmctld.log and $STATE/slurmd.log"
  exit 1
}

alive() { [ -s "$STATE/$1.pid" ] && kill -0 "$(cat "$STATE/$1.pid")" 2>/dev/null; }

stop() {
  if alive "$1"; then
    number=$(cat "$STATE/$1.pid")
    kill "$number"
    for _ in $(seq 40); do kill -0 "$number" 2>/dev/null || return 0; sleep 0.25; done
    kill -9 "$number"
  fi
}

case "${1:-}" in
  up)
    ready && { say "using the Slurm that runs here"; exit 0; }
    if [ -f "$CONF" ] && ! ours; then
      say "$CONF is not of this script's making and its Slurm does not answer: start that, or move the file away"
      exit 1
    fi
    must_be_root; install_packages; configure; start; sinfo ;;
  down)
    ours || { say "nothing of this script's making here"; exit 0; }
    must_be_root
    scancel --partition=main --quiet 2>/dev/null || true
    stop slurmd; stop slurmctld
    if [ -e "$STATE/munged-is-ours" ] && [ -s /run/munge/munged.pid ]; then
      kill "$(cat /run/munge/munged.pid)" || true
    fi
    rm -rf "$STATE" "$CONF" "$GRES"
    if [ "${2:-}" = --purge ]; then
      DEBIAN_FRONTEND=noninteractive apt-get purge -y -qq --auto-remove slurm-wlm slurmctld slurmd munge >/dev/null
    fi ;;
  status)
    sinfo && ready || { say "no node takes jobs. Start one with: tests/cluster/slurm.sh up"; exit 1; } ;;
  *)
    sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
