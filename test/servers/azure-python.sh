#!/bin/sh
# Microsoft's Azure SDK for Python, with which the tests prove their double of Azure.
#   azure-python.sh find            prints the folder that holds it, or fails: nothing is fetched
#   azure-python.sh obtain          the same, from PyPI at first (28 MB, seconds), and kept in the cache
# Needs Python 3.10 or newer with pip. Starts nothing.
set -eu

IDENTITY=1.27.0
SECRETS=4.12.0
CACHE=${GATEHOUSE_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/gatehouse-test}

die() { echo "$*" >&2; exit 1; }

# What pip fetches is built for one release of Python.
name_home() {
  release=$(python3 -c 'import sys; print(sys.version_info >= (3, 10) and "%d.%d" % sys.version_info[:2] or "")' \
    2>/dev/null) || die 'the Azure SDK needs python3, 3.10 or newer: there is none'
  [ -n "$release" ] || die "the Azure SDK needs Python 3.10 or newer: python3 is $(python3 -V 2>&1)"
  HOME_OF_SDK=$CACHE/azure-$IDENTITY-$SECRETS-python$release
}

find_sdk() { [ -d "$HOME_OF_SDK" ]; }

# In a folder of its own until it is whole: a killed pip leaves nothing that looks like the SDK.
install_sdk() {
  mkdir -p "$CACHE"
  (
    if command -v flock >/dev/null; then flock 9; fi
    if find_sdk; then exit 0; fi
    python3 -m pip --version >/dev/null 2>&1 || die 'the Azure SDK needs pip (Debian: apt-get install python3-pip)'
    rm -rf "$HOME_OF_SDK".part*
    part=$HOME_OF_SDK.part$$
    trap 'rm -rf "$part"' EXIT
    trap 'exit 1' INT HUP TERM
    echo "Azure SDK: python3 -m pip install, into $HOME_OF_SDK" >&2
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-warn-conflicts --target "$part" \
      "azure-identity==$IDENTITY" "azure-keyvault-secrets==$SECRETS" >&2 ||
      die 'the Azure SDK could not be installed: see what pip says above'
    mv "$part" "$HOME_OF_SDK"
  ) 9>"$CACHE/azure.lock"
}

name_home
case "${1:-} $#" in
  'find 1') find_sdk || die "the Azure SDK for Python is not here: test/servers/azure-python.sh obtain fetches it" ;;
  'obtain 1') find_sdk || install_sdk ;;
  *) die 'usage: azure-python.sh find | obtain' ;;
esac
echo "$HOME_OF_SDK"
