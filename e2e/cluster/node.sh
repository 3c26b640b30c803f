#!/bin/bash
# node.sh FOLDER SERVERS starts a cluster of one node, the programs of which are in
# SERVERS, and prints "the node is ready". It is process 1 of namespaces of its own, so
# that its end is the end of all pods:
#
#   unshare --mount --pid --fork --net --kill-child=KILL e2e/cluster/node.sh FOLDER SERVERS
#
# A pair of interfaces, ocml0 outside, leads to the node, which is 198.18.77.2 there
# (RFC 2544's addresses for tests). admin.conf, for kubectl, appears in FOLDER, and a log of
# each program. /run/nvml of the node is in it too: what is there when the node
# starts is what the runtime class nvidia mounts.
set -euo pipefail
folder=$1 servers=$2
node=198.18.77.2

# The gpu receiver knows the ids of a host by the kernel's process 2.
(printf kthreadd >/proc/self/comm && kill -STOP "$BASHPID") &

mount --make-rshared /
mount -t proc proc /proc
# The machine's own folders stay as they are.
for path in /run /var/lib/kubelet /var/lib/containerd /var/lib/cni /var/log /etc/cni; do
	mkdir -p "$path" "$folder$path"
	mount --bind "$folder$path" "$path"
	mount --make-rshared "$path"
done
cd "$folder"
mkdir -p /run/containerd /run/nvml /var/log/pods /etc/cni/net.d bin
for part in etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl; do
	ln -sf "$servers/kubernetes" bin/$part
done
PATH=$folder/bin:$servers:$PATH

# The test waits on its side until there is the interface.
ip link set lo up
until ip link set ocml1 up 2>/dev/null; do sleep 0.2; done
ip address add $node/30 dev ocml1
echo 1 >/proc/sys/net/ipv4/ip_forward

# start NAME PROGRAM ARGUMENT… starts a program, the log of which is NAME.log.
start() {
	name=$1
	shift
	"$@" >"$name.log" 2>&1 &
}

# await NAME COMMAND… waits, at most two minutes, until a command succeeds.
await() {
	name=$1
	shift
	for _ in $(seq 600); do
		if "$@" >/dev/null 2>&1; then return; fi
		sleep 0.2
	done
	echo "node: $name is not ready" >&2
	tail -n 30 "$name.log" >&2
	exit 1
}

# as NAME TOKEN writes the kubeconfig of a user.
as() {
	cat >"$1.conf" <<-END
		apiVersion: v1
		kind: Config
		clusters: [{name: cluster, cluster: {server: "https://$node:6443", certificate-authority: $folder/certs/apiserver.crt}}]
		users: [{name: $1, user: {token: $2}}]
		contexts: [{name: cluster, context: {cluster: cluster, user: $1}}]
		current-context: cluster
	END
}

: >tokens.csv
while read -r user name groups; do
	token=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')
	echo "$token,$name,$user,$groups" >>tokens.csv
	as "$user" "$token"
done <<END
admin admin system:masters
controllers system:kube-controller-manager
scheduler system:kube-scheduler
proxy system:kube-proxy
kubelet system:node:node1 system:nodes
dns admin:dns system:masters
policies admin:policies system:masters
END
openssl genrsa -out accounts.key 2048 2>/dev/null
openssl rsa -in accounts.key -pubout -out accounts.pub 2>/dev/null

start etcd etcd --data-dir etcd --unsafe-no-fsync --listen-client-urls http://127.0.0.1:2379 \
	--advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380
start kube-apiserver kube-apiserver --etcd-servers http://127.0.0.1:2379 --bind-address $node \
	--advertise-address $node --secure-port 6443 --cert-dir certs --token-auth-file tokens.csv \
	--kubelet-preferred-address-types InternalIP --service-cluster-ip-range 10.96.0.0/16 --service-account-issuer https://kubernetes.default.svc \
	--service-account-key-file accounts.pub --service-account-signing-key-file accounts.key \
	--authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction --allow-privileged
await kube-apiserver kubectl --kubeconfig admin.conf get --raw /readyz

# The runtime class nvidia mounts the library that stands in for NVML, as the
# NVIDIA container runtime does with the driver's.
cat >containerd.toml <<END
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  # Without CAP_SYS_RESOURCE no score falls.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
    runtime_type = "io.containerd.runc.v2"
    base_runtime_spec = "$folder/nvidia.json"
END
ctr oci spec | python3 -c '
import json, sys
spec = json.load(sys.stdin)
for source, target in (("/run/nvml/libnvidia-ml.so.1", "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"), ("/run/nvml", "/run/nvml")):
    spec["mounts"].append({"source": source, "destination": target, "type": "bind", "options": ["rbind", "ro"]})
json.dump(spec, sys.stdout)' >nvidia.json
cat >/etc/cni/net.d/10-pods.conflist <<END
{"cniVersion": "1.0.0", "name": "pods", "plugins": [
 {"type": "bridge", "bridge": "pods0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
  "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
 {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
start containerd containerd --config containerd.toml
await containerd ctr version
for image in images/*.tar; do
	ctr --namespace k8s.io images import "$image"
done

# All pods are below one control group, which the test removes.
for hierarchy in /sys/fs/cgroup/*/; do
	mkdir -p "${hierarchy}otelcol-ml-cluster" 2>/dev/null || :
done
if [ -d /sys/fs/cgroup/cpuset/otelcol-ml-cluster ]; then
	for list in cpus mems; do
		cat /sys/fs/cgroup/cpuset/cpuset.$list >/sys/fs/cgroup/cpuset/otelcol-ml-cluster/cpuset.$list
	done
fi
echo "nameserver $node" >resolv.conf
cat >kubelet.yaml <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
address: $node
cgroupDriver: cgroupfs
cgroupRoot: /otelcol-ml-cluster
enforceNodeAllocatable: []
failSwapOn: false
clusterDNS: [$node]
clusterDomain: cluster.local
resolvConf: $folder/resolv.conf
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
# The disk is the machine's.
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 1Mi, nodefs.available: "0%", imagefs.available: "0%", nodefs.inodesFree: "0%"}
END
cat >Corefile <<END
cluster.local. 10.in-addr.arpa. {
	bind $node
	errors
	ready $node:8181
	kubernetes cluster.local 10.in-addr.arpa {
		kubeconfig $folder/dns.conf cluster
	}
	cache 5
}
END
start kube-controller-manager kube-controller-manager --kubeconfig controllers.conf --leader-elect=false \
	--service-account-private-key-file accounts.key --root-ca-file certs/apiserver.crt --use-service-account-credentials
start kube-scheduler kube-scheduler --kubeconfig scheduler.conf --leader-elect=false
start kubelet kubelet --config kubelet.yaml --kubeconfig kubelet.conf --hostname-override node1 --node-ip $node
start kube-proxy kube-proxy --kubeconfig proxy.conf --proxy-mode iptables --cluster-cidr 10.244.0.0/24 \
	--hostname-override node1 --conntrack-max-per-core 0 --conntrack-tcp-timeout-established 0 --conntrack-tcp-timeout-close-wait 0
start coredns coredns -conf Corefile
await kubelet kubectl --kubeconfig admin.conf wait --for=condition=Ready node/node1 --timeout=1s
# Rules for packets are also for those from a pod to a pod, which pods0 switches.
[ -d /proc/sys/net/bridge ] || modprobe br_netfilter
echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables
start kube-router kube-router --kubeconfig policies.conf --hostname-override node1 --service-cluster-ip-range 10.96.0.0/16
await kube-router iptables --list KUBE-NWPLCY-DEFAULT
await coredns curl --silent --fail --noproxy '*' http://$node:8181/ready
echo "the node is ready"
wait
