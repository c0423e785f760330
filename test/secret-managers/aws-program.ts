import '../../src/scrub-environment.ts'
import type { AwsAuthConfig } from '../../schema/api/secret-references.ts'
import { ManagerError } from '../../src/secret-managers/manager.ts'
import { awsDouble, type CannedAnswer } from './aws-double.ts'

// Reads secrets in a process of its own, which can be compiled: aws-program.ts '[{"authConfig", "settings", "answers"}]'.
// Prints what became of each and which hosts were asked, as JSON.

export interface Asked {
  authConfig: AwsAuthConfig
  settings?: object
  answers?: Record<string, CannedAnswer>
}

async function main(reads: Asked[]): Promise<void> {
  const outcomes: unknown[] = []
  for (const { authConfig, settings, answers } of reads) {
    const double = awsDouble(authConfig, answers, settings)
    const outcome = await double
      .fetch()
      .then(({ content }) => content)
      .catch((error) => (error instanceof ManagerError ? `${error.failure} at ${error.step}` : `${error}`))
    outcomes.push([outcome, ...double.requests.map(({ url }) => new URL(url).hostname)])
  }
  process.stdout.write(JSON.stringify(outcomes))
}

void main(JSON.parse(process.argv[2] ?? ''))
