#!/bin/sh
# Installs Gatehouse, or tries it out. Run it without arguments to see how.
# Everything happens in main, called on the last line: of a script cut short while downloading nothing runs (IN-1).
set -eu

# One group, read as a whole before any of it runs: of a name cut short between two functions the start would be run.
{
usage() {
  cat <<'USAGE'
install.sh --try [--once]                         in a checkout: build, run with a sample prompt in a throw-away folder
install.sh --binary FILE [--prefix DIR]           install this executable; SHA256SUMS lies beside it
install.sh --url RELEASE_FOLDER [--prefix DIR]    download the one for this machine, and SHA256SUMS, and install it

As root on a machine with systemd: /usr/local/bin/gatehouse, /etc/gatehouse, /var/lib/gatehouse, the user gatehouse and
a unit. Otherwise, or with --prefix: everything below one folder (default: gatehouse in the home folder).
USAGE
}

die() {
  echo "install.sh: $*" >&2
  exit 1
}

main() {
  way='' source='' prefix='' once=''
  while [ $# -gt 0 ]; do
    case $1 in
      --try) way=${way}try ;;
      --once) once=--once ;;
      --binary | --url | --prefix)
        [ -n "${2:-}" ] || die "$1 needs a value"
        case $1 in
          --prefix) prefix=$2 ;;
          *) way=$way${1#--} source=$2 ;;
        esac
        shift
        ;;
      --help) usage && exit 0 ;;
      *) usage >&2 && exit 64 ;;
    esac
    shift
  done
  case $way in
    try) try_out ;;
    binary | url) install_release ;;
    *) usage >&2 && exit 64 ;;
  esac
}

try_out() {
  cd "$(dirname "$0")"
  [ -f .ci/build.ts ] || die '--try builds from source: run it in a checkout'
  .ci/install
  binary=$(node_modules/.bin/bun .ci/build.ts --target host)
  exec "$binary" try $once
}

install_release() {
  umask 022
  # either turns the executable into a script runner (SC-5)
  unset BUN_BE_BUN BUN_OPTIONS
  staging=$(mktemp -d)
  new=''
  trap 'rm -rf "$staging" ${new:+"$new"}' EXIT
  trap 'exit 1' HUP INT TERM
  fetch_release
  verify_checksum
  choose_places
  check_modes
  put_in_place
}

# Fills the staging folder with the executable, named $asset, and SHA256SUMS.
fetch_release() {
  if [ "$way" = binary ]; then
    asset=$(basename "$source")
    [ -f "$source" ] || die "$source is no file"
    [ -f "$(dirname "$source")/SHA256SUMS" ] || die "SHA256SUMS is missing beside $source"
    cp "$source" "$(dirname "$source")/SHA256SUMS" "$staging"
  else
    asset=$(asset_name)
    case $source in
      https://* | http://127.0.0.1[:/]* | http://localhost[:/]*) ;;
      *) die 'the release folder must be an https:// URL' ;;
    esac
    download SHA256SUMS
    download "$asset"
  fi
}

asset_name() {
  machine=$(uname -m)
  case $machine in
    x86_64 | amd64) arch=x64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) die "there is no executable for the processor $machine" ;;
  esac
  case $(uname -s) in
    Darwin) echo "gatehouse-darwin-$arch" ;;
    Linux)
      if ! ls /lib*/ld-linux* >/dev/null 2>&1; then arch=$arch-musl
      elif [ $arch = x64 ] && ! grep -qw avx2 /proc/cpuinfo; then arch=x64-baseline
      fi
      echo "gatehouse-linux-$arch"
      ;;
    *) die "there is no executable for $(uname -s)" ;;
  esac
}

download() {
  url=${source%/}/$1
  if command -v curl >/dev/null; then
    curl -fsSL --connect-timeout 20 --proto-redir =https -o "$staging/$1" "$url" || die "$url cannot be downloaded"
  elif command -v wget >/dev/null; then
    wget -q -O "$staging/$1" "$url" || die "$url cannot be downloaded"
  else
    die 'neither curl nor wget is here'
  fi
}

verify_checksum() {
  expected=$(awk -v name="$asset" '$2 == name || $2 == "*" name { print $1 }' "$staging/SHA256SUMS")
  [ -n "$expected" ] || die "SHA256SUMS does not list $asset; nothing was installed"
  [ "$(sha256 "$staging/$asset")" = "$expected" ] || die "the checksum of $asset is wrong; nothing was installed"
}

sha256() {
  if command -v sha256sum >/dev/null; then sha256sum <"$1"
  else shasum -a 256 <"$1"
  fi | cut -d ' ' -f 1
}

# For the system, or for one user below one folder.
choose_places() {
  if [ -z "$prefix" ] && [ "$(id -u)" = 0 ] && [ -d /run/systemd/system ]; then
    system=yes bin=/usr/local/bin etc=/etc/gatehouse data=/var/lib/gatehouse
  else
    prefix=${prefix:-${HOME:?}/gatehouse}
    mkdir -p "$prefix"
    prefix=$(cd "$prefix" && pwd)
    system='' bin=$prefix/bin etc=$prefix data=$prefix/data
  fi
}

# What exists with other modes is someone's decision or someone's mistake: never changed silently (IN-5).
check_modes() {
  [ -n "$system" ] || return 0
  require_mode "$etc" 750
  require_mode "$etc/config.toml" 640
  require_mode "$etc/master.key" 400
  require_mode "$data" 700
}

require_mode() {
  [ -e "$1" ] || return 0
  [ "$(stat -c %a "$1")" = "$2" ] || die "$1 has the mode $(stat -c %a "$1"); to go on: chmod 0$2 $1"
}

# The executable gets its name last, after it has run here and has accepted the configuration (IN-6).
put_in_place() {
  mkdir -p "$bin"
  new=$bin/gatehouse.new
  cp "$staging/$asset" "$new"
  chmod 755 "$new"
  "$new" version >/dev/null || die 'this executable does not run here; it was not installed'
  [ -e "$etc/config.toml" ] || write_config
  "$new" config check --config "$etc/config.toml" >/dev/null || die 'the executable was not installed'
  if [ -n "$system" ]; then give_to_service; fi
  sync
  mv "$new" "$bin/gatehouse"
  say_next
}

write_config() {
  if [ -z "$system" ]; then
    "$new" init --json --dir "$prefix" >/dev/null
  else
    [ -d "$etc" ] || mkdir -m 750 "$etc"
    "$new" init --json >/dev/null
  fi
}

# Root owns the configuration and keeps the key, which systemd hands to the service (IN-5).
give_to_service() {
  getent passwd gatehouse >/dev/null ||
    useradd --system --user-group --no-create-home --home-dir "$data" --shell /usr/sbin/nologin gatehouse
  chgrp gatehouse "$etc" "$etc/config.toml"
  chown gatehouse:gatehouse "$data"
  write_unit >/etc/systemd/system/gatehouse.service
  systemctl daemon-reload
}

write_unit() {
  cat <<UNIT
[Unit]
Description=Gatehouse
After=network-online.target
Wants=network-online.target

[Service]
Type=exec
ExecStart=$bin/gatehouse serve --config $etc/config.toml
User=gatehouse
Group=gatehouse
UMask=0077
LoadCredential=master.key:$etc/master.key
Environment=GATEHOUSE_MASTER_KEY_SOURCE=credential:master.key
UnsetEnvironment=BUN_BE_BUN BUN_OPTIONS NODE_OPTIONS NODE_TLS_REJECT_UNAUTHORIZED
StateDirectory=gatehouse
StateDirectoryMode=0700
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
CapabilityBoundingSet=
LimitCORE=0
Restart=on-failure
RestartPreventExitStatus=64 65 77 78
TimeoutStopSec=30

[Install]
WantedBy=multi-user.target
UNIT
}

say_next() {
  echo "Installed. Keep a copy of $etc/master.key apart from the backups. Next:"
  if [ -n "$system" ]; then
    echo '  systemctl enable --now gatehouse'
    echo "  $bin/gatehouse bootstrap --org NAME --email ADDRESS"
  else
    echo "  $bin/gatehouse bootstrap --org NAME --email ADDRESS --config $etc/config.toml"
    echo "  $bin/gatehouse serve --config $etc/config.toml"
  fi
}
} # end of the group

main "$@"
