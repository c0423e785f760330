const PREFIXES = ['VAULT_', 'AWS_', 'AZURE_', 'MSAL_', 'MSI_', 'IDENTITY_', 'PG']
const NAMES = new Set([
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'ALL_PROXY',
  'NO_PROXY',
  'NODE_TLS_REJECT_UNAUTHORIZED',
  'NODE_EXTRA_CA_CERTS',
  'DEBUG',
  'DATABASE_URL',
  'POSTGRES_URL',
])

/** Whether an SDK or a driver would read this variable behind our back (CF-7, decision 6); lower case counts as well. */
export function isAmbient(name: string): boolean {
  const upper = name.toUpperCase()
  return NAMES.has(upper) || PREFIXES.some((prefix) => upper.startsWith(prefix))
}
