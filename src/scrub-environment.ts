/**
 * Imported first by main.ts, for its effect: what SDKs and drivers would read is gone before any of them is loaded.
 * Proxy, CA and machine identity come from the configuration alone. Workers would still see the original environment,
 * so each is started with `env: {}`.
 */
import { isAmbient } from './config/ambient.ts'

for (const name of Object.keys(process.env)) if (isAmbient(name)) delete process.env[name]

// Without them the AWS SDK takes ~/.aws/config and ~/.aws/credentials, whose `credential_process` is run (decision 45).
process.env['AWS_CONFIG_FILE'] = '/dev/null'
process.env['AWS_SHARED_CREDENTIALS_FILE'] = '/dev/null'
