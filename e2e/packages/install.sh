#!/usr/bin/env bash
# Installs, starts, upgrades, removes and purges the packages of dist/ in an empty
# Debian, each in a root of its own with systemd as its first process, and checks the
# packages with Debian's and RPM's tools.
#
#   e2e/packages/install.sh [TEST…]     same, lint, unit, deb, rpm, swap_deb, swap_rpm,
#                                       tar (all)
#
# It needs root and debootstrap, which it installs. Without them it says so and ends
# with 0, or with CI=true with 1.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=e2e/packages/root.sh
. e2e/packages/root.sh

# What systemd-analyze security says of the unit, times ten: 0 is best, 100 is worst.
exposure=19
work=$(mktemp -d "$cache/install.XXXXXX")
booted=
trap 'stop_root; rm -rf "$work"' EXIT

fail() {
	echo "packages: $*" >&2
	exit 1
}

# within SECONDS WHAT COMMAND… repeats a command until it succeeds.
within() {
	local until=$((SECONDS + $1)) what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		if [ $SECONDS -ge $until ]; then
			echo "packages: not within the time: $what" >&2
			return 1
		fi
		sleep 0.2
	done
}

# What the tests need beside Debian's base.
tools=$cache/tools
wanted="systemd dbus man-db curl rpm dnf lintian"
if [ "$(cat "$tools/.whole" 2>/dev/null)" != "$wanted" ]; then
	echo "packages: installing $wanted into a Debian: 1 to 2 minutes"
	rm -rf "$tools"
	cp -a "$base/." "$tools"
	cp -L /etc/resolv.conf "$tools/etc/"
	# shellcheck disable=SC2016 # expanded inside
	quietly "$cache/tools.log" unshare --mount --pid --fork --kill-child bash -euc '
		mount -t proc proc "$1/proc"
		mount --rbind /dev "$1/dev"
		exec chroot "$1" env DEBIAN_FRONTEND=noninteractive bash -euc "
			apt-get update
			apt-get install -y --no-install-recommends $2
			apt-get clean"' tools "$tools" "$wanted" || leave_out "the tools cannot be installed"
	rm -rf "$tools/var/log/journal"
	echo "$wanted" >"$tools/.whole"
fi

# start_root ROOT starts systemd in it, with processes, network, mounts and control
# groups of its own.
start_root() {
	local root=$1 controller
	for controller in systemd memory pids devices; do
		mountpoint -q "/sys/fs/cgroup/$controller" || leave_out "cgroups v1 has no controller $controller here"
	done
	# shellcheck disable=SC2016 # expanded inside
	bash -euc '
		for controller in systemd memory pids devices; do
			mkdir -p "/sys/fs/cgroup/$controller/otelcol-ml-$2"
			echo $$ >"/sys/fs/cgroup/$controller/otelcol-ml-$2/cgroup.procs"
		done
		exec unshare --mount --pid --net --uts --ipc --cgroup --fork --kill-child bash -euc "$0" "$1"
	' '
		root=$0
		mount --make-rprivate /
		mount --bind "$root" "$root"
		mount -t proc proc "$root/proc"
		mount -t sysfs sysfs "$root/sys"
		mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
		mkdir "$root/sys/fs/cgroup/systemd"
		mount -t cgroup -o none,name=systemd systemd "$root/sys/fs/cgroup/systemd"
		for controller in memory pids devices; do
			mkdir "$root/sys/fs/cgroup/$controller"
			mount -t cgroup -o "$controller" cgroup "$root/sys/fs/cgroup/$controller"
		done
		mount -t tmpfs -o mode=755 tmpfs "$root/dev"
		for device in null:3 zero:5 full:7 random:8 urandom:9; do
			mknod -m 666 "$root/dev/${device%:*}" c 1 "${device#*:}"
		done
		ln -s /proc/self/fd "$root/dev/fd"
		mkdir "$root/dev/shm"
		mount -t tmpfs tmpfs "$root/dev/shm"
		mount -t tmpfs -o mode=755 tmpfs "$root/run"
		exec chroot "$root" env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --unit=multi-user.target
	' "$root" "$$" >"$work/boot.log" 2>&1 </dev/null &
	booted=$!
	within 60 "systemd runs in $root" is_up || { cat "$work/boot.log" >&2; exit 1; }
}

# is_up reports whether systemd has started all units.
is_up() {
	init=$(cat "/proc/$booted/task/$booted/children")
	init=${init% }
	[ "$(cat "/proc/$init/comm")" = systemd ] && [ "$(in_root systemctl is-system-running)" = running ]
}

stop_root() {
	[ -n "$booted" ] || return 0
	kill -KILL "$booted" 2>/dev/null || true
	wait "$booted" 2>/dev/null || true
	booted=
	local group
	for group in /sys/fs/cgroup/*/"otelcol-ml-$$"; do
		[ ! -d "$group" ] || within 20 "the processes in $group end" find "$group" -depth -type d -exec rmdir {} +
	done
}

in_root() {
	nsenter --target "$init" --mount --pid --net --uts --ipc --cgroup --root \
		env --chdir=/ -i HOME=/root TERM=dumb PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@" </dev/null
}

# deb_of PROGRAM and rpm_of PROGRAM print where its packages are.
deb_of() { ls dist/"$1"_*.deb; }
rpm_of() { ls dist/"$1"-[0-9]*.rpm; }

# new_root NAME makes a root with the tools and the packages in /opt.
new_root() {
	root=$work/$1
	cp -a "$tools/." "$root"
	mkdir "$root/opt/dist"
	cp dist/* "$root/opt/dist/"
	[ ! -d "$work/older" ] || cp -r "$work/older" "$root/opt/older"
	cp bin/mlgen "$root/opt/"
}

# older writes packages of an older version, with another default configuration.
older() {
	[ ! -d "$work/older" ] || return 0
	{
		echo "# The configuration of an older version."
		cat distribution/config/agent.yaml
	} >"$work/older.yaml"
	quietly "$work/older.log" env OUT="$work/older" VERSION=0.0.9 CONFIG="$work/older.yaml" distribution/package/build.sh
}

# The same programs give the same bytes.
test_same() {
	(cd dist && sha256sum --check --quiet SHA256SUMS)
	quietly "$work/again.log" env OUT="$work/again" distribution/package/build.sh
	diff -r dist "$work/again"
}

# Debian's and RPM's checkers, and how versions sort.
test_lint() {
	new_root lint
	chroot "$root" useradd lint
	chroot "$root" su lint -c 'lintian --fail-on error,warning --tag-display-limit 0 /opt/dist/*.deb' 2>&1 | tee "$work/lintian"
	[ ! -s "$work/lintian" ] || fail "lintian is not content"
	chroot "$root" sh -c 'rpm --checksig /opt/dist/*.rpm' >"$work/checksig"
	[ "$(grep -c ': digests OK$' "$work/checksig")" = 2 ] || fail "rpm --checksig: $(cat "$work/checksig")"
	local program files gateway deb rpm
	for program in otelcol-ml otelcol-ml-agent; do
		deb=/opt/$(deb_of $program) rpm=/opt/$(rpm_of $program)
		files=$(chroot "$root" rpm -qlp "$rpm")
		for file in /usr/bin/$program /usr/libexec/otelcol-ml/queuecheck /usr/lib/systemd/system/otelcol-ml.service /usr/share/man/man8/$program.8.gz; do
			grep -qx "$file" <<<"$files" || fail "the rpm of $program lacks $file"
		done
		gateway=
		if [ $program = otelcol-ml ]; then
			grep -qx /usr/lib/systemd/system/otelcol-ml-gateway.service <<<"$files" || fail "the rpm lacks the gateway's unit"
			gateway="/etc/otelcol-ml/gateway.yaml /etc/otelcol-ml/otelcol-ml-gateway.conf "
		fi
		[ "$(chroot "$root" rpm -qcp "$rpm" | tr '\n' ' ')" = "/etc/otelcol-ml/config.yaml $gateway/etc/otelcol-ml/otelcol-ml.conf " ] || fail "the rpm of $program has other configuration files"
		deb=$(chroot "$root" dpkg-deb -f "$deb" Version)
		rpm=$(chroot "$root" rpm -qp --qf "%{VERSION}" "$rpm")
		for version in "0.0.9-1 $deb" "$deb ${deb/\~*/}-1" "$deb 0.2.0~dev-1"; do
			# shellcheck disable=SC2086 # two versions
			chroot "$root" dpkg --compare-versions ${version% *} lt ${version#* } || fail "dpkg does not sort $version"
		done
		for version in "0.0.9 $rpm" "$rpm ${rpm/\~*/}" "$rpm 0.2.0~dev"; do
			[ "$(chroot "$root" rpm --eval "%{lua: print(rpm.vercmp('${version% *}', '${version#* }'))}")" = -1 ] || fail "rpm does not sort $version"
		done
	done
}

# systemd understands each line of the unit and of the drop-in, and rates them.
test_unit() {
	new_root unit
	chroot "$root" dpkg -i "/opt/$(deb_of otelcol-ml)" >/dev/null 2>&1
	start_root "$root"
	local unit=/lib/systemd/system/otelcol-ml.service said
	said=$(in_root systemd-analyze verify --man=yes $unit 2>&1) || fail "systemd-analyze verify: $said"
	[ -z "$said" ] || fail "systemd-analyze verify: $said"
	said=$(in_root systemd-analyze verify --man=yes /lib/systemd/system/otelcol-ml-gateway.service 2>&1) || fail "systemd-analyze verify: $said"
	[ -z "$said" ] || fail "systemd-analyze verify: $said"
	in_root systemd-analyze security --no-pager --offline=true --threshold=$exposure /lib/systemd/system/otelcol-ml-gateway.service >"$work/security" || { cat "$work/security" >&2; fail "the gateway's unit is exposed more than $exposure/100"; }
	in_root systemd-analyze security --no-pager --offline=true --threshold=$exposure $unit >"$work/security" || { cat "$work/security" >&2; fail "the unit is exposed more than $exposure/100"; }
	tail -n 1 "$work/security"
	sandbox
	in_root install -D -m 0644 /usr/share/otelcol-ml/attribution.conf /etc/systemd/system/otelcol-ml.service.d/attribution.conf
	said=$(in_root systemd-analyze verify $unit 2>&1) || fail "with attribution.conf: $said"
	[ -z "$said" ] || fail "with attribution.conf: $said"
	in_root install -D -m 0644 /usr/share/otelcol-ml/kernel-log.conf /etc/systemd/system/otelcol-ml.service.d/kernel-log.conf
	said=$(in_root systemd-analyze verify $unit 2>&1) || fail "with kernel-log.conf: $said"
	[ -z "$said" ] || fail "with kernel-log.conf: $said"
	in_root rm /etc/systemd/system/otelcol-ml.service.d/kernel-log.conf
	in_root cp -r /etc/systemd/system/otelcol-ml.service.d /etc/systemd/system/look.service.d
	said=$(look)
	[ "$said" = "it reads environments of others" ] || fail "with attribution.conf: $said"
	stop_root
}

# sandbox expects that a program with the settings of the unit sees what the gpu
# receiver reads, and writes to its own folders only.
sandbox() {
	in_root mknod -m 666 /dev/nvidiactl c 195 255
	in_root mknod -m 666 /dev/loop-control c 10 237
	cat >"$root/opt/look" <<'END'
#!/bin/bash
opened() { dd if="$1" count=0 2>&1 || true; }
# No driver answers, but the device may be opened.
opened /dev/nvidiactl | grep -q 'No such device' || echo "GPUs cannot be opened: $(opened /dev/nvidiactl)"
opened /dev/loop-control | grep -q 'Operation not permitted' || echo "other devices can be opened"
grep -q '^btime ' /proc/stat || echo "no /proc/stat"
grep -q . /proc/1/cgroup || echo "no cgroups of others"
[ "$(stat -c %u /proc/1)" = 0 ] || echo "owners of processes are hidden"
[ -z "$(head -c 1 /proc/1/environ 2>/dev/null)" ] || echo "it reads environments of others"
[ "$(id -un)" = otelcol-ml ] || echo "it runs as $(id -un)"
for folder in / /etc /etc/otelcol-ml /usr /var/lib /home /sys/fs/cgroup; do
	! touch "$folder/written" 2>/dev/null || echo "it writes to $folder"
done
for folder in queue reproductions state; do
	touch "/var/lib/otelcol-ml/$folder/written" || echo "it cannot write $folder"
	rm "/var/lib/otelcol-ml/$folder/written"
done
[ "$(stat -c %a:%U /var/lib/otelcol-ml/reproductions)" = 700:otelcol-ml ] || echo "reproductions are not private"
[ "$OTELCOL_ML_REPRO_DIR" = /var/lib/otelcol-ml/reproductions ] || echo "reproductions go to $OTELCOL_ML_REPRO_DIR"
END
	chmod 755 "$root/opt/look"
	sed -e 's|^ExecStart=.*|ExecStart=/bin/bash -c "/opt/look >/var/lib/otelcol-ml/said 2>\&1"|' -e 's|^Type=.*|Type=oneshot|' -e '/^Restart/d' -e '/^ExecStartPre/d' \
		"$root/lib/systemd/system/otelcol-ml.service" >"$root/etc/systemd/system/look.service"
	local said
	said=$(look)
	[ -z "$said" ] || fail "in the unit's sandbox: $said"
}

# look prints what is wrong in the sandbox.
look() {
	in_root systemctl daemon-reload
	in_root systemctl start look || in_root journalctl --no-pager -u look
	in_root cat /var/lib/otelcol-ml/said
}

main_pid() { in_root systemctl show --property MainPID --value otelcol-ml; }
is_ready() { in_root curl --silent --fail http://127.0.0.1:13133/; }

# ready waits for the service, and expects what the unit promises of its process.
ready() {
	within 60 "the service is ready" is_ready || { in_root journalctl --no-pager -u otelcol-ml >&2; exit 1; }
	local pid status
	pid=$(main_pid)
	status=$(in_root cat "/proc/$pid/status")
	for line in "NoNewPrivs:.1" "Seccomp:.2" "CapEff:.0000000000000000" "CapBnd:.0000000000000000" "Uid:.$(in_root id -u otelcol-ml).*"; do
		grep -qx "$line" <<<"$status" || fail "the process has not $line"
	done
	in_root grep -qz '^GOMEMLIMIT=614MiB$' "/proc/$pid/environ" || fail "otelcol-ml.conf is not read"
	[ "$(in_root systemctl show --property MemoryMax --value otelcol-ml)" = 1073741824 ] || fail "MemoryMax is not 1 GiB"
	# Addresses that are listened on (state 0A) are loopback.
	if in_root awk '$4 == "0A" && $2 !~ /^0100007F:|^00000000000000000000000001000000:|^0000000000000000FFFF00000100007F:/ { print; found = 1 } END { exit !found }' "/proc/$pid/net/tcp" "/proc/$pid/net/tcp6"; then
		fail "a port is open beyond the loopback interface"
	fi
}

# works sends telemetry and reads it back: the metrics for Prometheus, the live page,
# and a reproduction.
works() {
	quietly "$work/mlgen.log" in_root /opt/mlgen --scenario torchtel,snakepit --rate 20 --duration 3s --seed 1
	within 60 "metrics of the telemetry that was sent" in_root sh -c 'curl -sf http://127.0.0.1:8889/metrics | grep -q "^ml_steps_total{.*torchtel"'
	within 60 "the live page shows the run" in_root sh -c 'curl -sf http://127.0.0.1:8890/ | grep -q torchtel'
	within 60 "a reproduction" in_root sh -c 'ls /var/lib/otelcol-ml/reproductions/*/*/repro.py'
}

# reloads changes the configuration that the service has by SIGHUP.
reloads() {
	local pid
	pid=$(main_pid)
	in_root sed -i 's|^  debug:$|&\n    sampling_initial: 3|' /etc/otelcol-ml/config.yaml
	in_root systemctl reload otelcol-ml
	within 60 "the configuration is read again" in_root sh -c 'journalctl --no-pager -u otelcol-ml | grep -q "Config updated, restart service"'
	within 60 "the service is ready again" is_ready
	in_root cp -p /etc/otelcol-ml/config.yaml /opt/config.yaml
	in_root sh -c 'echo "wrong: true" >>/etc/otelcol-ml/config.yaml'
	! in_root systemctl reload otelcol-ml 2>"$work/reload.log" || fail "a wrong configuration is read again"
	in_root cp -p /opt/config.yaml /etc/otelcol-ml/config.yaml
	[ "$(main_pid)" = "$pid" ] || fail "a reload starts another process"
}

# collectors prints the process ids of the collectors that run.
collectors() {
	# shellcheck disable=SC2016 # expanded inside
	in_root sh -c 'for process in /proc/[0-9]*; do if grep -qs "^otelcol-ml" "$process/comm"; then echo "${process#/proc/}"; fi; done'
}

# stopped expects that the service was not killed.
stopped() {
	[ -z "$(collectors)" ] || fail "the service runs on"
	! in_root journalctl --no-pager -u otelcol-ml | grep -E 'Killing process|Failed with result|Main process exited' || fail "the service did not stop by itself"
}

# gone lists what is left of the package outside of the folders named.
gone() {
	in_root find / -xdev \( -path /proc -o -path /opt -o -path /var/lib/dpkg -o -path /var/lib/rpm -o -path /root/.rpmdb -o -path /var/log -o -path /var/cache/man -o -path /sys \) -prune -o -name '*otelcol*' -print
}

test_deb() {
	older
	new_root deb
	start_root "$root"
	in_root sh -c 'dpkg -i /opt/older/otelcol-ml_*.deb' >"$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log" >&2; exit 1; }
	[ "$(in_root systemctl is-enabled otelcol-ml)" = enabled ] || fail "the service is not enabled"
	ready
	works
	reloads
	in_root sh -c 'echo "# mine" >>/etc/otelcol-ml/config.yaml; touch /var/lib/otelcol-ml/kept'
	local pid
	pid=$(main_pid)
	in_root dpkg --force-confdef -i "/opt/$(deb_of otelcol-ml)" >"$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log" >&2; exit 1; }
	in_root grep -qx '# mine' /etc/otelcol-ml/config.yaml || fail "an upgrade replaces a changed config.yaml"
	in_root cmp /etc/otelcol-ml/config.yaml.dpkg-dist /usr/share/otelcol-ml/config/agent.yaml || fail "the new config.yaml is not beside the changed one"
	ready
	[ "$(main_pid)" != "$pid" ] || fail "an upgrade does not restart the service"
	[ "$(in_root dpkg-query --show --showformat '${Version}' otelcol-ml)" = "$(dpkg-deb -f "$(deb_of otelcol-ml)" Version)" ] || fail "another version is installed"
	works
	! in_root systemctl is-active --quiet otelcol-ml-gateway || fail "the gateway starts by itself"
	in_root systemctl enable --now otelcol-ml-gateway >"$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log" >&2; in_root journalctl --no-pager -u otelcol-ml-gateway >&2; exit 1; }
	within 60 "the gateway is ready beside the agent" in_root bash -c 'exec 3<>/dev/tcp/127.0.0.1/33133'
	in_root dpkg -r otelcol-ml >"$work/dpkg.log" 2>&1
	stopped
	in_root test -e /etc/otelcol-ml/otelcol-ml.conf -a -e /var/lib/otelcol-ml/kept || fail "dpkg -r removes configuration or state"
	[ -z "$(in_root find /etc/systemd -xtype l -name 'otelcol*')" ] || fail "dpkg -r leaves a link to nothing"
	in_root test ! -e /usr/bin/otelcol-ml -a ! -e /lib/systemd/system/otelcol-ml.service || fail "dpkg -r leaves the program"
	in_root dpkg -P otelcol-ml >"$work/dpkg.log" 2>&1
	[ -z "$(gone)" ] || fail "dpkg -P leaves $(gone)"
	in_root getent passwd otelcol-ml >/dev/null || fail "dpkg -P removes the user"
	stop_root
}

test_rpm() {
	older
	new_root rpm
	start_root "$root"
	# Debian's database of rpm does not have the C library.
	in_root sh -c 'rpm -i --nodeps /opt/older/otelcol-ml-[0-9]*.rpm' >"$work/rpm.log" 2>&1 || { cat "$work/rpm.log" >&2; exit 1; }
	[ "$(in_root systemctl is-enabled otelcol-ml)" = enabled ] || fail "the preset is not applied"
	! in_root systemctl is-active --quiet otelcol-ml || fail "rpm starts the service"
	in_root systemctl start otelcol-ml
	ready
	works
	in_root sh -c 'echo "# mine" >>/etc/otelcol-ml/config.yaml; touch /var/lib/otelcol-ml/kept'
	local pid
	pid=$(main_pid)
	in_root rpm -U --nodeps "/opt/$(rpm_of otelcol-ml)" >"$work/rpm.log" 2>&1 || { cat "$work/rpm.log" >&2; exit 1; }
	in_root grep -qx '# mine' /etc/otelcol-ml/config.yaml || fail "an upgrade replaces a changed config.yaml"
	in_root cmp /etc/otelcol-ml/config.yaml.rpmnew /usr/share/otelcol-ml/config/agent.yaml || fail "the new config.yaml is not beside the changed one"
	ready
	[ "$(main_pid)" != "$pid" ] || fail "an upgrade does not restart the service"
	[ "$(in_root rpm -qa 'otelcol*')" = "$(basename "$(rpm_of otelcol-ml)" .rpm)" ] || fail "installed: $(in_root rpm -qa 'otelcol*')"
	works
	in_root rpm -V --nodeps otelcol-ml | grep -v ' c /etc/otelcol-ml/config.yaml$' && fail "rpm -V finds changes"
	in_root rpm -e otelcol-ml >"$work/rpm.log" 2>&1 || { cat "$work/rpm.log" >&2; exit 1; }
	stopped
	in_root grep -qx '# mine' /etc/otelcol-ml/config.yaml.rpmsave || fail "rpm -e removes a changed config.yaml"
	in_root test -e /var/lib/otelcol-ml/kept || fail "rpm -e removes the state"
	in_root rm -r /var/lib/otelcol-ml /etc/otelcol-ml
	[ -z "$(gone | grep -v rpmnew)" ] || fail "rpm -e leaves $(gone)"
	stop_root
}

# settings makes what an administrator may have made.
settings() {
	in_root sh -c 'echo "# mine" >>/etc/otelcol-ml/config.yaml; touch /var/lib/otelcol-ml/kept'
	in_root mkdir -p /etc/systemd/system/otelcol-ml.service.d
	in_root sh -c 'printf "[Service]\nEnvironment=MINE=1\n" >/etc/systemd/system/otelcol-ml.service.d/mine.conf'
	in_root systemctl daemon-reload
	in_root systemctl enable --now otelcol-ml-gateway >"$work/enable.log" 2>&1
}

# runs PROGRAM expects that the service runs it, with the settings and the state that
# there were, and works.
runs() {
	within 60 "the service runs $1" has_program "$1" || { in_root journalctl --no-pager -u otelcol-ml >&2; exit 1; }
	ready
	in_root grep -qx '# mine' /etc/otelcol-ml/config.yaml || fail "$1 has another config.yaml"
	in_root test -e /var/lib/otelcol-ml/kept || fail "$1 has no state of before"
	in_root systemctl show --property DropInPaths otelcol-ml | grep -q mine.conf || fail "$1 has no drop-in of before"
	[ "$(in_root systemctl is-enabled otelcol-ml)" = enabled ] || fail "the service of $1 is not enabled"
	no_dead_link
	works
}
has_program() { in_root grep -qzx "/usr/bin/$1" "/proc/$(main_pid)/cmdline"; }
no_dead_link() { [ -z "$(in_root find /etc/systemd -xtype l -name 'otelcol*')" ] || fail "a link to nothing is left"; }

# The smaller collector takes the place of the whole one, and gives it back.
test_swap_deb() {
	new_root swap_deb
	start_root "$root"
	apt "/opt/$(deb_of otelcol-ml)"
	ready
	settings
	apt "/opt/$(deb_of otelcol-ml-agent)"
	runs otelcol-ml-agent
	reloads
	local said
	said=$(in_root systemd-analyze verify --man=yes /lib/systemd/system/otelcol-ml.service 2>&1) || fail "systemd-analyze verify: $said"
	[ -z "$said" ] || fail "systemd-analyze verify: $said"
	in_root dpkg -P otelcol-ml >"$work/dpkg.log" 2>&1
	in_root test ! -e /var/lib/otelcol-ml-gateway -a ! -e /etc/otelcol-ml/gateway.yaml || fail "dpkg -P leaves what the gateway had"
	in_root systemctl restart otelcol-ml
	runs otelcol-ml-agent
	# dpkg alone does the same.
	dpkg -i "/opt/$(deb_of otelcol-ml)"
	runs otelcol-ml
	in_root systemctl disable --now otelcol-ml >"$work/enable.log" 2>&1
	dpkg -i "/opt/$(deb_of otelcol-ml-agent)"
	[ "$(in_root systemctl is-enabled otelcol-ml)" = disabled ] || fail "the other package enables a disabled service"
	! in_root systemctl is-active --quiet otelcol-ml || fail "the other package starts a disabled service"
	in_root systemctl enable --now otelcol-ml >"$work/enable.log" 2>&1
	runs otelcol-ml-agent
	in_root rm -r /etc/systemd/system/otelcol-ml.service.d
	in_root dpkg -r otelcol-ml-agent >"$work/dpkg.log" 2>&1
	stopped
	in_root test -e /etc/otelcol-ml/otelcol-ml.conf -a -e /var/lib/otelcol-ml/kept || fail "dpkg -r removes configuration or state"
	no_dead_link
	in_root dpkg -P otelcol-ml-agent otelcol-ml >"$work/dpkg.log" 2>&1
	[ -z "$(gone)" ] || fail "dpkg -P leaves $(gone)"
	stop_root
}

apt() { in_root apt-get install -y --no-install-recommends "$@" >"$work/apt.log" 2>&1 || { cat "$work/apt.log" >&2; exit 1; }; }
dpkg() { in_root dpkg "$@" >"$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log" >&2; exit 1; }; }
dnf() { in_root dnf --assumeyes --disablerepo='*' "$@" >"$work/dnf.log" 2>&1 || { cat "$work/dnf.log" >&2; exit 1; }; }

# The same with dnf.
test_swap_rpm() {
	new_root swap_rpm
	# A package for what Debian's database of rpm does not have.
	{
		printf 'name: debian\narch: all\nversion: 12.0.0\nmaintainer: nobody <nobody@example.com>\ndescription: The base.\nprovides:\n'
		chroot "$root" sh -c 'rpm -qp --requires /opt/dist/*.rpm' | sed -n '/^rpmlib/d; s/.*/  - "&"/p' | sort -u
	} >"$root/opt/debian.yaml"
	.cache/bin/nfpm package --config "$root/opt/debian.yaml" --packager rpm --target "$root/opt/debian.rpm" >/dev/null
	start_root "$root"
	dnf install /opt/debian.rpm "/opt/$(rpm_of otelcol-ml)"
	in_root systemctl start otelcol-ml
	ready
	settings
	dnf install --allowerasing "/opt/$(rpm_of otelcol-ml-agent)"
	runs otelcol-ml-agent
	reloads
	in_root systemctl disable otelcol-ml >"$work/enable.log" 2>&1
	dnf install --allowerasing "/opt/$(rpm_of otelcol-ml)"
	[ "$(in_root systemctl is-enabled otelcol-ml)" = disabled ] || fail "the other package enables a disabled service"
	in_root systemctl enable otelcol-ml >"$work/enable.log" 2>&1
	runs otelcol-ml
	dnf install --allowerasing "/opt/$(rpm_of otelcol-ml-agent)"
	in_root rm -r /etc/systemd/system/otelcol-ml.service.d
	dnf remove otelcol-ml-agent
	stopped
	in_root grep -qx '# mine' /etc/otelcol-ml/config.yaml.rpmsave || fail "dnf remove removes a changed config.yaml"
	in_root test -e /var/lib/otelcol-ml/kept || fail "dnf remove removes the state"
	no_dead_link
	in_root rm -r /var/lib/otelcol-ml /var/lib/otelcol-ml-gateway /etc/otelcol-ml
	[ -z "$(gone)" ] || fail "dnf remove leaves $(gone)"
	stop_root
}

# The archives work from any folder, as any user, and each configuration loads.
test_tar() {
	new_root tar
	start_root "$root"
	in_root sh -c 'mkdir "/srv/a folder" && for archive in /opt/dist/*.tar.gz; do tar -xzf $archive -C "/srv/a folder"; done && mkdir -m 777 /srv/here'
	local folder config under program
	for program in otelcol-ml-agent otelcol-ml; do
		folder=$(in_root sh -c "echo '/srv/a folder'/$program-[0-9]*")
		for config in "$root$folder"/config/*.yaml; do
			# A configuration to be merged over others names those first.
			under=()
			for file in $(sed -n '1s/^# Over \([^:]*\): .*/\1/p' "$config" | grep -o '[a-z-]*[.]yaml'); do under+=(--config "$folder/config/$file"); done
			in_root systemd-run --quiet --collect --wait --pipe "$folder/$program" validate "${under[@]}" --config "$folder/config/$(basename "$config")" || fail "$(basename "$config") does not load with $program"
		done
	done
	[ "$(find "$root$folder/config" -name '*.yaml' | wc -l)" = $(($(find distribution/config -name '*.yaml' | wc -l) - 1)) ] || fail "configurations are missing"
	in_root systemd-run --quiet --unit archive --uid nobody --working-directory /srv/here "$folder/otelcol-ml" --config "$folder/config/agent.yaml"
	within 60 "the collector of the archive is ready" is_ready || { in_root journalctl --no-pager -u archive >&2; exit 1; }
	in_root systemctl stop archive
	! in_root journalctl --no-pager -u archive | grep -E 'Failed with result|Main process exited' || fail "the collector of the archive fails"
	in_root "$folder/queuecheck" /srv/here
	[ -s "$root$folder/licenses/go/LICENSE" ] || fail "the archive has no licenses"
	python3 - dist/*.spdx.json <<'END'
import json, sys
packages = json.load(open(sys.argv[1]))["packages"]
modules = [p for p in packages if p["name"].startswith("go.opentelemetry.io/collector/")]
assert len(packages) > 300 and len(modules) > 50, "the bill of materials has %d packages" % len(packages)
assert all(p["licenseConcluded"] != "NOASSERTION" for p in modules), "modules without a license"
END
	stop_root
}

status=0
for list in "${@:-same lint unit deb rpm swap_deb swap_rpm tar}"; do
	for name in $list; do
		started=$SECONDS
		# Where a failure is looked at, a function goes on after it.
		set +e
		(set -e; trap stop_root EXIT; "test_$name")
		result=$?
		set -e
		if [ $result -eq 0 ]; then echo "packages: $name: $((SECONDS - started)) s"; else
			status=1
			echo "packages: $name FAILED" >&2
		fi
		rm -rf "${work:?}"/{lint,unit,deb,rpm,swap_deb,swap_rpm,tar}
	done
done
exit $status
