# SPDX-License-Identifier: Apache-2.0
# What test_guest.py runs in the guest: guest_verbs.sh BUILD. Prints sections, each after a line "== NAME", and the status of
# what a section ran as "status N".
build=$1
export HCCLD_SOCKET=/tmp/hccld/socket
mkdir -m 700 /tmp/hccld
section() {
	echo "== $1"
	shift
	"$@"
	echo "status $?"
}
packets() {
	cat /sys/class/net/ve0/statistics/tx_bytes /sys/class/net/ve1/statistics/tx_bytes
}
section resources-before rdma resource show
mkfifo /tmp/ready
"$build/daemon/hccld" --no-keeper --socket $HCCLD_SOCKET --ready-fd 3 3>/tmp/ready >/tmp/log 2>&1 &
daemon=$!
head -c 1 /tmp/ready >/dev/null # or its end
section json "$build/hcclctl/hcclctl" devices --json
section table "$build/hcclctl/hcclctl" devices
section sent-before packets
section verbs "$build/tests/guest/verbs"
section sent-after packets
kill -TERM $daemon
section daemon wait $daemon
section log cat /tmp/log
section resources-after rdma resource show
exit 42
