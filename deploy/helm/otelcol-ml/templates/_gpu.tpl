{{- define "otelcol-ml.gpu.changes" -}}
extensions:
  health_check:
    # The kubelet asks for it from outside of the pod.
    endpoint: 0.0.0.0:13133
processors:
  memory_limiter:
    limit_mib: {{ include "otelcol-ml.memoryMiB" (dict "limit" .Values.gpu.resources.limits.memory "share" 0.8) }}
{{- end -}}

{{- define "otelcol-ml.gpu.configuration" -}}
{{- include "otelcol-ml.configuration" (dict "root" . "part" "gpu" "file" "gpu.yaml" "changes" (include "otelcol-ml.gpu.changes" .)) -}}
{{- end -}}

{{- define "otelcol-ml.gpu.env" -}}
- {name: NVIDIA_VISIBLE_DEVICES, value: all}
# Of the driver only NVML: no CUDA.
- {name: NVIDIA_DRIVER_CAPABILITIES, value: utility}
- {name: SELF_METRICS_HOST, value: 0.0.0.0}
- {name: STACK_ENDPOINT, value: "{{ include "otelcol-ml.partName" (dict "root" . "part" "agent") }}:4319"}
{{- end -}}
