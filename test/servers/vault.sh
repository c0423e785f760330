#!/bin/sh
# A throw-away HashiCorp Vault for the tests. Business Source License: used here, never shipped.
#   vault.sh find                      prints the path of the program, or fails: nothing is fetched or built
#   vault.sh obtain                    the same, built from the Go registry at first (5 minutes), and kept in the cache
#   vault.sh start DIR PID [tls]       a dev server with the root token `root`; prints its URL; tls: DIR/tls/vault-ca.pem
#   vault.sh cluster DIR PID [NODES]   raft nodes (2), unsealed, the first one active; prints their URLs, one a line;
#                                      root token and unseal key are in DIR/root-token and DIR/unseal-key
#   vault.sh node DIR N                starts node N of a cluster, which was killed, again where it was, sealed
# A `vault` on the PATH is taken instead. Building needs Go 1.25.1 or newer. All listens on loopback only. Servers end,
# and DIR goes, when process PID has ended or DIR is removed; one alone is ended by the id in DIR/N/pid. Never touches a
# server that it did not start.
set -eu

VERSION=1.21.0
GO_AT_LEAST=go1.25.1
MODULE=$(cd "$(dirname "$0")" && pwd)/vault
CACHE=${GATEHOUSE_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/gatehouse-test}
BUILT=$CACHE/vault-$VERSION/vault
# a caller's settings would send the commands below elsewhere
unset VAULT_ADDR VAULT_AGENT_ADDR VAULT_TOKEN VAULT_NAMESPACE VAULT_CACERT VAULT_API_ADDR VAULT_CLUSTER_ADDR

die() { echo "$*" >&2; exit 1; }

find_vault() {
  if VAULT=$(command -v vault); then return; fi
  VAULT=$BUILT
  [ -x "$VAULT" ]
}

# In a folder of its own until it is whole: a killed build leaves nothing that looks like Vault.
build_vault() {
  GO=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) || die "Vault needs $GO_AT_LEAST or newer: there is no go"
  [ "$(printf '%s\n' "$GO_AT_LEAST" "$GO" | sort -V | head -n 1)" = "$GO_AT_LEAST" ] ||
    die "Vault needs $GO_AT_LEAST or newer: go is $GO"
  mkdir -p "$CACHE"
  (
    if command -v flock >/dev/null; then flock 9; fi
    if find_vault; then exit 0; fi
    rm -rf "$CACHE/vault-$VERSION".*
    part=$CACHE/vault-$VERSION.$$
    trap 'rm -rf "$part"' EXIT
    trap 'exit 1' INT HUP TERM
    mkdir "$part"
    echo "Vault $VERSION: go build, with $GO; about 5 minutes, into $BUILT" >&2
    cd "$MODULE"
    GOTOOLCHAIN=local GOWORK=off CGO_ENABLED=0 go build -mod=readonly -buildvcs=false -ldflags='-s -w' \
      -o "$part/vault" github.com/hashicorp/vault >&2 || die 'Vault could not be built: see what go says above'
    mv "$part" "$CACHE/vault-$VERSION"
  ) 9>"$CACHE/vault.lock"
  find_vault
}

# The next one is Vault's own, for its nodes.
pick_port() { echo $((20000 + 2 * ($(od -An -N2 -tu2 /dev/urandom) % 6000))); }

# A node has a vote from the start, not after ten seconds.
export VAULT_RAFT_AUTOPILOT_DISABLE=1

# run NODE ARGUMENT…: true when it listens; false when it has ended, for want of the port mostly.
run() {
  node=$1
  shift
  : >"$node/log"
  HOME=$node SKIP_SETCAP=1 "$VAULT" server "$@" >"$node/log" 2>&1 </dev/null &
  echo $! >"$node/pid"
  for waited in $(seq 600); do
    if grep -q 'Vault server started!' "$node/log"; then return; fi
    kill -0 "$(cat "$node/pid")" 2>/dev/null || return 1
    sleep 0.05
  done
  die "vault (not ready after $((waited / 20)) s): $(tail -n 1 "$node/log")"
}

start_dev() {
  mkdir -p "$DIR/1"
  for attempt in 1 2 3 4 5 6 7 8; do
    PORT=$(pick_port)
    set -- -dev -dev-root-token-id=root -dev-no-store-token -dev-listen-address="127.0.0.1:$PORT"
    if [ "$TLS" = tls ]; then
      mkdir -p "$DIR/tls"
      set -- "$@" -dev-tls -dev-tls-cert-dir="$DIR/tls"
    fi
    if run "$DIR/1" "$@"; then return; fi
  done
  die "vault (attempt $attempt): $(tail -n 1 "$DIR/1/log")"
}

# Elections after 1 s and not after 5.
write_node() {
  mkdir -p "$1/raft"
  cat >"$1/config.hcl" <<END
storage "raft" {
  path = "$1/raft"
  node_id = "node-$2"
  performance_multiplier = 1
}
listener "tcp" {
  address = "127.0.0.1:$3"
  cluster_address = "127.0.0.1:$(($3 + 1))"
  tls_disable = true
}
api_addr = "http://127.0.0.1:$3"
cluster_addr = "https://127.0.0.1:$(($3 + 1))"
disable_mlock = true
END
  echo "http://127.0.0.1:$3" >"$1/url"
}

start_node() {
  for attempt in 1 2 3 4 5 6 7 8; do
    write_node "$DIR/$1" "$1" "$(pick_port)"
    if run "$DIR/$1" -config="$DIR/$1/config.hcl"; then return; fi
  done
  die "vault (node $1, attempt $attempt): $(tail -n 1 "$DIR/$1/log")"
}

# until_done COMMAND…: a node that has just started says no for a while.
until_done() {
  for waited in $(seq 150); do
    if "$@" >"$DIR/command.log" 2>&1; then return; fi
    sleep 0.1
  done
  die "vault (after $waited attempts): $(tail -n 1 "$DIR/command.log")"
}

# A node that has just been unsealed joins for some time more.
knows_active_node() { "$VAULT" status -address="$1" | grep -Eq '^(HA Mode +active|Active Node Address +http)'; }

start_cluster() {
  for n in $(seq "$NODES"); do start_node "$n"; done
  first=$(cat "$DIR/1/url")
  said=$("$VAULT" operator init -address="$first" -key-shares=1 -key-threshold=1)
  echo "$said" | sed -n 's/^Unseal Key 1: //p' >"$DIR/unseal-key"
  echo "$said" | sed -n 's/^Initial Root Token: //p' >"$DIR/root-token"
  for n in $(seq "$NODES"); do
    url=$(cat "$DIR/$n/url")
    if [ "$n" != 1 ]; then until_done "$VAULT" operator raft join -address="$url" "$first"; fi
    until_done "$VAULT" operator unseal -address="$url" "$(cat "$DIR/unseal-key")"
    until_done knows_active_node "$url"
  done
}

# Outlives a killed test run; ends with it otherwise.
stop_with() {
  (
    trap '' INT HUP TERM
    servers=
    while kill -0 "$1" && found=$(cat "$DIR"/*/pid); do
      servers=$found
      sleep 0.5
    done
    kill -9 $servers || :
    rm -rf "$DIR"
  ) >/dev/null 2>&1 </dev/null &
}

# Leaves nothing behind when the start fails or is interrupted.
give_up() {
  kill -9 $(cat "$DIR"/*/pid) 2>/dev/null || :
  rm -rf "$DIR"
}

usage() { die 'usage: vault.sh find | obtain | start DIR PID [tls] | cluster DIR PID [NODES] | node DIR N'; }

umask 077
COMMAND=${1:-}
case "$COMMAND $#" in
  'find 1') find_vault || die 'Vault is not here: test/servers/vault.sh obtain builds it' ;;
  'obtain 1')
    find_vault || build_vault
    echo "Vault: $("$VAULT" version), $VAULT" >&2
    ;;
  'start '[34] | 'cluster '[34] | 'node 3') find_vault || build_vault ;;
  *) usage ;;
esac
DIR=${2:-}
trap 'exit 1' INT HUP TERM
case "$COMMAND" in start | cluster) trap '[ $? = 0 ] || give_up' EXIT ;; esac
case "$COMMAND" in
  find | obtain) echo "$VAULT" ;;
  start)
    TLS=${4:-}
    start_dev
    stop_with "$3"
    if [ "$TLS" = tls ]; then echo "https://127.0.0.1:$PORT"; else echo "http://127.0.0.1:$PORT"; fi
    ;;
  cluster)
    NODES=${4:-2}
    start_cluster
    stop_with "$3"
    cat "$DIR"/*/url
    ;;
  node) run "$DIR/$3" -config="$DIR/$3/config.hcl" || die "vault: $(tail -n 1 "$DIR/$3/log")" ;;
esac
