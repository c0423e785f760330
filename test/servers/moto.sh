#!/bin/sh
# A throw-away AWS for the tests: Secrets Manager, STS, IAM and the instance metadata service of moto.
#   moto.sh find            prints the folder that holds moto, or fails: nothing is fetched
#   moto.sh obtain          the same, from PyPI at first (315 MB, half a minute), and kept in the cache
#   moto.sh start DIR PID   prints http://… ; policies are enforced; the server ends, and DIR goes, when process PID has
#                           ended, or when the server is ended by the id in DIR/pid
# Needs Python 3.10 or newer with pip. Listens on loopback only. Never touches a server that it did not start.
set -eu

VERSION=5.2.3
CACHE=${GATEHOUSE_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/gatehouse-test}

die() { echo "$*" >&2; exit 1; }

# What pip fetches is built for one release of Python.
name_home() {
  release=$(python3 -c 'import sys; print(sys.version_info >= (3, 10) and "%d.%d" % sys.version_info[:2] or "")' \
    2>/dev/null) || die 'moto needs python3, 3.10 or newer: there is none'
  [ -n "$release" ] || die "moto needs Python 3.10 or newer: python3 is $(python3 -V 2>&1)"
  HOME_OF_MOTO=$CACHE/moto-$VERSION-python$release
}

find_moto() { [ -d "$HOME_OF_MOTO" ]; }

# In a folder of its own until it is whole: a killed pip leaves nothing that looks like moto.
install_moto() {
  mkdir -p "$CACHE"
  (
    if command -v flock >/dev/null; then flock 9; fi
    if find_moto; then exit 0; fi
    python3 -m pip --version >/dev/null 2>&1 || die 'moto needs pip (Debian: apt-get install python3-pip)'
    rm -rf "$HOME_OF_MOTO".part*
    part=$HOME_OF_MOTO.part$$
    trap 'rm -rf "$part"' EXIT
    trap 'exit 1' INT HUP TERM
    echo "moto $VERSION: python3 -m pip install 'moto[server]==$VERSION', into $HOME_OF_MOTO" >&2
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-warn-conflicts --target "$part" \
      "moto[server]==$VERSION" >&2 || die 'moto could not be installed: see what pip says above'
    mv "$part" "$HOME_OF_MOTO"
  ) 9>"$CACHE/moto.lock"
}

SERVER=
start_server() {
  mkdir -p "$DIR"
  chmod 700 "$DIR"
  : >"$DIR/log"
  PYTHONPATH=$HOME_OF_MOTO INITIAL_NO_AUTH_ACTION_COUNT=0 python3 -m moto.server -H 127.0.0.1 -p 0 \
    >"$DIR/log" 2>&1 </dev/null &
  SERVER=$!
  echo "$SERVER" >"$DIR/pid"
  waited=0
  until URL=$(sed -n 's/.*Running on \(http:[^ ]*\).*/\1/p' "$DIR/log") && [ -n "$URL" ]; do
    kill -0 "$SERVER" 2>/dev/null || die "moto: $(tail -n 1 "$DIR/log")"
    waited=$((waited + 1))
    [ "$waited" -lt 600 ] || die 'moto: not listening after a minute'
    sleep 0.1
  done
}

# Outlives a killed test run; ends with it otherwise.
stop_with() {
  (
    trap '' INT HUP TERM
    while kill -0 "$1" 2>/dev/null && kill -0 "$SERVER" 2>/dev/null; do sleep 0.5; done
    kill "$SERVER" || :
    rm -rf "$DIR"
  ) >/dev/null 2>&1 </dev/null &
}

# Leaves nothing behind when the start fails or is interrupted.
give_up() {
  if [ -n "$SERVER" ]; then kill "$SERVER" 2>/dev/null || :; fi
  rm -rf "$DIR"
}

name_home
case "${1:-} $#" in
  'find 1') find_moto || die "moto is not here: test/servers/moto.sh obtain fetches it" ;;
  'obtain 1')
    find_moto || install_moto
    echo "moto: $VERSION, $HOME_OF_MOTO" >&2
    ;;
  'start 3')
    DIR=$2
    find_moto || install_moto
    cd /
    trap '[ $? = 0 ] || give_up' EXIT
    trap 'exit 1' INT HUP TERM
    start_server
    stop_with "$3"
    echo "$URL"
    exit
    ;;
  *) die 'usage: moto.sh find | obtain | start DIR PID' ;;
esac
echo "$HOME_OF_MOTO"
