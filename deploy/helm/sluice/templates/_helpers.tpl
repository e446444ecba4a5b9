{{- define "sluice.name" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "sluice.selector" -}}
app.kubernetes.io/name: sluice
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "sluice.labels" -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "sluice.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}

{{- /* Names by which callers reach the Service, besides those that the values add. */ -}}
{{- define "sluice.names" -}}
{{- $name := include "sluice.name" . -}}
{{- $space := printf "%s.%s" $name .Release.Namespace -}}
{{- concat (list $name $space (printf "%s.svc" $space)) .Values.tls.names | join "," -}}
{{- end -}}

{{- /* Values that do not go together. */ -}}
{{- define "sluice.check" -}}
{{- if not .Values.rootKey.existingSecret -}}
{{- fail (printf "rootKey.existingSecret is needed, the name of a Secret with the root key, without which nobody can read the data: kubectl create secret generic sluice-key --namespace %s --from-literal=root.key=\"$(sluice key new)\"" .Release.Namespace) -}}
{{- end -}}
{{- if .Values.cluster.enabled -}}
{{- if .Values.tls.existingSecret -}}
{{- fail "tls.existingSecret is for a server alone: nodes of a cluster make their certificates themselves" -}}
{{- end -}}
{{- if and .Values.cluster.found (gt (int .Values.replicaCount) 1) -}}
{{- fail "cluster.found is for the first start, with replicaCount 1: the others join what it has founded" -}}
{{- end -}}
{{- else -}}
{{- if gt (int .Values.replicaCount) 1 -}}
{{- fail "a server alone has replicaCount 1: several need cluster.enabled" -}}
{{- end -}}
{{- if .Values.cluster.found -}}
{{- fail "cluster.found needs cluster.enabled" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* What founding and serving have in common. */ -}}
{{- define "sluice.container" -}}
image: {{ include "sluice.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
env:
  - name: POD_NAME
    valueFrom:
      fieldRef:
        fieldPath: metadata.name
  - name: SLUICE_CONFIG
    value: /etc/sluice/settings/sluice.toml
  - name: SLUICE_DATA_DIR
    value: /var/lib/sluice/data
  - name: SLUICE_LISTEN
    value: 0.0.0.0:7070
  - name: SLUICE_KEY_SOURCE
    value: file:/etc/sluice/key/root.key
{{- if .Values.policy.existingConfigMap }}
  - name: SLUICE_ACCESS_POLICY
    value: /etc/sluice/policy/policy.toml
{{- end }}
{{- if .Values.tls.existingSecret }}
  - name: SLUICE_TLS_CERT
    value: /etc/sluice/tls/tls.crt
  - name: SLUICE_TLS_KEY
    value: /etc/sluice/tls/tls.key
  - name: SLUICE_TLS_CLIENT_CA
    value: /etc/sluice/tls/ca.crt
{{- else }}
  - name: SLUICE_TLS
    value: auto
  - name: SLUICE_TLS_NAME
    value: {{ include "sluice.names" . | quote }}
{{- end }}
{{- if .Values.cluster.enabled }}
  - name: SLUICE_CLUSTER_ADDRESS
    value: {{ printf "$(POD_NAME).%s-nodes.%s.svc.%s:7070" (include "sluice.name" .) .Release.Namespace .Values.cluster.domain }}
{{- end }}
volumeMounts:
  - name: data
    mountPath: /var/lib/sluice
  - name: settings
    mountPath: /etc/sluice/settings
    readOnly: true
  - name: key
    mountPath: /etc/sluice/key
    readOnly: true
{{- if .Values.tls.existingSecret }}
  - name: tls
    mountPath: /etc/sluice/tls
    readOnly: true
{{- end }}
{{- if .Values.policy.existingConfigMap }}
  - name: policy
    mountPath: /etc/sluice/policy
    readOnly: true
{{- end }}
{{- if .Values.cluster.joinTokens }}
  - name: tokens
    mountPath: /etc/sluice/tokens
    readOnly: true
{{- end }}
{{- end -}}
