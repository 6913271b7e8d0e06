#!/bin/sh
# The life of the package on a Debian host, as its root. $1: the package; $2: its next version.
set -eu
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
export DEBIAN_FRONTEND=noninteractive
all='--path-include=*'

say() { echo "== $*"; }

wait_live() {
    for _ in $(seq 600); do
        viamesh status --check live 2>/dev/null && return
        sleep 0.1
    done
    cat /tmp/log
    return 1
}

say install
dpkg "$all" -i "$1"
getent group viamesh
test "$(stat -c %a /etc/viamesh)" = 700
for file in /usr/share/man/man1/viamesh.1* /usr/share/man/man1/viamesh-status.1* \
    /usr/share/bash-completion/completions/viamesh /usr/share/viamesh/node.schema.json \
    /usr/share/doc/viamesh/examples/three-offices/node.yaml; do
    test -s "$file" || { echo "no $file"; exit 1; }
done
unit=/usr/lib/systemd/system/viamesh.service
test -s $unit || unit=/lib/systemd/system/viamesh.service
start=$(sed -n 's/^ExecStart=//p' $unit)

say configure
viamesh init --organization acme --name alpha --address 192.0.2.1 --port 13000
viamesh check

say start
# What the unit does before.
mkdir -p /run/viamesh /var/lib/viamesh
VIAMESH_OPTIONS=
. /etc/default/viamesh
eval "exec $start" >/tmp/log 2>&1 &
daemon=$!
wait_live
test "$(stat -c %G:%a /run/viamesh/control.sock)" = viamesh:660
viamesh status

say upgrade
echo 'VIAMESH_OPTIONS="-v"' > /etc/default/viamesh
sums() { cat /etc/viamesh/* /etc/default/viamesh | sha256sum; }
before=$(sums)
dpkg "$all" -i "$2"
test "$(sums)" = "$before"
viamesh reload
viamesh status --check live
kill -TERM $daemon
wait $daemon

say start again
. /etc/default/viamesh
eval "exec $start" >/tmp/log 2>&1 &
daemon=$!
wait_live
viamesh registry | grep alpha
kill -TERM $daemon
wait $daemon

say remove and purge
dpkg --remove viamesh
test -s /etc/viamesh/node.yaml
dpkg --purge viamesh
! getent group viamesh
rm -rf /run/viamesh
left=$(find / -xdev -name '*viamesh*' -not -path '/tmp/*' -not -path '/proc/*' -not -path '/packages/*')
test -z "$left" || { echo "left behind: $left"; exit 1; }
say done
