{{- /* The prefix of the names of objects. Kubernetes allows a StatefulSet 52 characters. */ -}}
{{- define "otelcol-ml.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Takes the root context and the name of a part: agent, gpu, gateway or
       fleet. */ -}}
{{- define "otelcol-ml.partName" -}}
{{- printf "%s-%s" (include "otelcol-ml.fullname" .root) .part -}}
{{- end -}}

{{- /* What selects the pods of a part. Kubernetes refuses a change of it, so it depends
       on no version. */ -}}
{{- define "otelcol-ml.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "otelcol-ml.labels" -}}
{{ include "otelcol-ml.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "otelcol-ml.metadata" -}}
name: {{ include "otelcol-ml.partName" . }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "otelcol-ml.labels" . | nindent 2 }}
{{- end -}}

{{- /* The image of a part. Takes root and part. */ -}}
{{- define "otelcol-ml.image" -}}
{{- $image := .root.Values.image -}}
{{- $repository := required "image.repository is empty: push the image of `make image` to your registry, and name it" $image.repository -}}
{{- $digest := $image.digest -}}
{{- $agent := .root.Values.agent -}}
{{- $whole := or .root.Values.gateway.enabled $agent.kubernetesAttributes $agent.trainingLogs -}}
{{- if and $image.agentRepository (or (eq .part "gpu") (and (eq .part "agent") (not $whole))) -}}
{{- $repository = $image.agentRepository -}}
{{- $digest = $image.agentDigest -}}
{{- end -}}
{{- if $digest -}}
{{- printf "%s@%s" $repository $digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default .root.Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{- /* A share of a memory limit, in MiB. Takes limit and share. */ -}}
{{- define "otelcol-ml.memoryMiB" -}}
{{- $units := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- $quantity := toString .limit -}}
{{- $unit := regexFind "[A-Za-z]*$" $quantity -}}
{{- $bytes := mulf (trimSuffix $unit $quantity | float64) (get $units $unit) -}}
{{- divf (mulf $bytes .share) 1048576 | floor | int64 -}}
{{- end -}}
