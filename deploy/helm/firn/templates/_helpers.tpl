{{- define "firn.name" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "firn.selector" -}}
app.kubernetes.io/name: firn
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "firn.labels" -}}
{{ include "firn.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: firn
{{- end }}

{{- define "firn.meta" -}}
name: {{ include "firn.name" .root }}-{{ .part }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "firn.labels" . | nindent 2 }}
{{- end }}

{{- define "firn.image" -}}
image: "{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}"
imagePullPolicy: {{ .image.pullPolicy }}
{{- end }}
