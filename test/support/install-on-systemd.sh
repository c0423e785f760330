#!/bin/sh
# Installs for the system inside a mount namespace whose /etc, /run, /usr/local and /var/lib are thrown away, starts the
# service as its unit would, and says what came of it in lines that begin with "= ".
#   install-on-systemd.sh probe                       can this be done here?
#   install-on-systemd.sh INSTALL_SH EXECUTABLE DIR   DIR: an empty place for the upper layers
set -eu
umask 022

throw_away() {
  mount -t tmpfs none "$1" &&
    mkdir "$1/upper" "$1/work" "$1/programs" &&
    mount -t overlay -o "lowerdir=/etc,upperdir=$1/upper,workdir=$1/work" none /etc &&
    mount -t tmpfs -o mode=755 none /usr/local &&
    mount -t tmpfs -o mode=755 none /var/lib &&
    mount -t tmpfs -o mode=755 none /run
}

start_service() {
  mkdir /run/credentials
  cp /etc/gatehouse/master.key /run/credentials
  chown -R gatehouse /run/credentials
  : >/run/service.log
  cd /
  env CREDENTIALS_DIRECTORY=/run/credentials GATEHOUSE_SERVER_PORT=0 \
    "$(sed -n 's/^Environment=//p' /etc/systemd/system/gatehouse.service)" \
    setpriv --reuid=gatehouse --regid=gatehouse --clear-groups \
    $(sed -n 's/^ExecStart=//p' /etc/systemd/system/gatehouse.service) >/run/service.log 2>&1 &
  service=$!
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    if grep -q '"event":"listening"' /run/service.log; then return; fi
    sleep 0.1
  done
  cat /run/service.log >&2
  exit 1
}

if [ "$1" = probe ]; then
  command -v setpriv useradd >/dev/null
  dir=$(mktemp -d)
  status=0 && (throw_away "$dir") || status=1
  umount -l /etc "$dir" || status=1
  rmdir "$dir"
  exit $status
fi
install=$1 executable=$2
throw_away "$3/tmp"
mkdir -p /run/systemd/system
printf '#!/bin/sh\necho "= systemctl $*"\n' >"$3/tmp/programs/systemctl"
chmod 755 "$3/tmp/programs/systemctl"
PATH=$3/tmp/programs:/usr/sbin:/usr/bin:/sbin:/bin

sh "$install" --binary "$executable"
stat -c '= %a %U %G %n' /etc/gatehouse /etc/gatehouse/config.toml /etc/gatehouse/master.key /var/lib/gatehouse
echo "= $(getent passwd gatehouse | cut -d : -f 7)"
start_service
/usr/local/bin/gatehouse bootstrap --org Example --email a@example.com --output /run/admin.json
if [ -S /var/lib/gatehouse/admin.sock ] && [ -s /run/admin.json ]; then echo '= bootstrapped'; fi
kill "$service"
ended=0 && wait "$service" || ended=$?
echo "= service ended: $ended"
again=0 && sh "$install" --binary "$executable" || again=$?
echo "= installed again: $again"
chmod 751 /etc/gatehouse
wrong=0 && sh "$install" --binary "$executable" 2>/run/said || wrong=$?
sed -n 's/.*; to go on:/= to go on:/p' /run/said
echo "= wrong mode: $wrong, $(stat -c %a /etc/gatehouse)"
