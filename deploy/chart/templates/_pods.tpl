{{/* Common parts of the pods of all layouts. */}}

{{- define "octavo.placement" -}}
{{- with .Values.engine.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .Values.engine.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- end }}

{{- define "octavo.hub-token" -}}
{{- with .Values.hubTokenSecret }}
- name: HF_TOKEN
  valueFrom: {secretKeyRef: {name: {{ . }}, key: HF_TOKEN}}
{{- end }}
{{- end }}

{{- define "octavo.args" -}}
{{- range .Values.engine.args }}, {{ toJson . }}{{ end }}
{{- end }}

{{/* Labels of the pods that answer requests. In a group of hosts, this is the first pod. */}}
{{- define "octavo.answering" -}}
{{- if eq .Values.engine.layout "multi-host" -}}
{app: {{ .Release.Name }}, leaderworkerset.sigs.k8s.io/worker-index: "0"}
{{- else -}}
{app: {{ .Release.Name }}}
{{- end }}
{{- end }}

{{- define "octavo.probes" -}}
startupProbe:
  httpGet: {path: /health, port: http}
  periodSeconds: 5
  failureThreshold: 240
readinessProbe:
  httpGet: {path: /health, port: http}
  periodSeconds: 5
{{- end }}
