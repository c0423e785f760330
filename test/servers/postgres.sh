#!/bin/sh
# A throw-away PostgreSQL for the tests.
#   postgres.sh start DIR PID   prints postgres://… ; the server ends, and DIR goes, when process PID has ended
# Debian's package; installed if it is missing and we are root. Never touches a server that it did not start.
set -eu

die() { echo "$*" >&2; exit 1; }

find_binaries() {
  for folder in /usr/lib/postgresql/*/bin; do
    if [ -x "$folder/initdb" ]; then BIN=$folder; fi
  done
  [ -n "${BIN:-}" ]
}

install_package() {
  [ "$(id -u)" = 0 ] || die 'PostgreSQL is not installed (Debian: apt-get install postgresql)'
  command -v apt-get >/dev/null || die 'PostgreSQL is not installed, and there is no apt-get'
  export DEBIAN_FRONTEND=noninteractive
  apt-get update >&2
  apt-get install -y --no-install-recommends postgresql-common >&2
  # Without this the package starts a server of its own.
  sed -i 's/^#* *create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
  apt-get install -y --no-install-recommends postgresql >&2
}

# initdb and the server refuse to run as root.
unprivileged() {
  if [ "$(id -u)" != 0 ]; then "$@"
  elif command -v setpriv >/dev/null; then setpriv --reuid=postgres --regid=postgres --clear-groups "$@"
  else runuser -u postgres -- "$@"
  fi
}

make_cluster() {
  mkdir -p "$DIR"
  chmod 700 "$DIR"
  printf 'secret\n' >"$DIR/password"
  if [ "$(id -u)" = 0 ]; then chown -R postgres "$DIR"; fi
  unprivileged "$BIN/initdb" -D "$DIR/data" -U gatehouse --pwfile="$DIR/password" -A scram-sha-256 -E UTF8 \
    --locale=C --no-sync >"$DIR/initdb.log" 2>&1 || die "initdb: $(tail -n 1 "$DIR/initdb.log")"
}

start_server() {
  for attempt in 1 2 3 4 5 6 7 8; do
    PORT=$((20000 + ($(od -An -N2 -tu2 /dev/urandom) % 12000)))
    if unprivileged "$BIN/pg_ctl" -D "$DIR/data" -l "$DIR/log" -w -t 60 \
      -o "-p $PORT -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off -c max_connections=300" \
      start >/dev/null 2>&1; then return; fi
  done
  die "pg_ctl start (attempt $attempt): $(tail -n 1 "$DIR/log")"
}

# Outlives a killed test run; ends with it otherwise.
stop_with() {
  (
    trap '' INT HUP TERM
    while kill -0 "$1" 2>/dev/null; do sleep 0.5; done
    unprivileged "$BIN/pg_ctl" -D "$DIR/data" -m immediate -w stop
    rm -rf "$DIR"
  ) >/dev/null 2>&1 </dev/null &
}

[ "${1:-}" = start ] && [ $# = 3 ] || die 'usage: postgres.sh start DIR PID'
DIR=$2
cd /
find_binaries || { install_package && find_binaries; } || die 'PostgreSQL could not be installed'
make_cluster
start_server
stop_with "$3"
echo "postgres://gatehouse:secret@127.0.0.1:$PORT/postgres"
