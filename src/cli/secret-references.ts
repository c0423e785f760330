import { readFileSync } from 'node:fs'
import type { CreateSecretReference } from '../../schema/api/secret-references.ts'
import type { SecretReferenceTest } from '../../schema/api/secret-values.ts'
import { parseStrict } from '../json.ts'
import { EXIT, StartError } from '../start-error.ts'
import { callAdmin } from './admin-socket.ts'
import { type Call, defineCommand } from './command.ts'
import { loadFor } from './config.ts'
import { failureOf } from './failure.ts'

export const secretReferencesTest = defineCommand({
  name: 'secret-references test',
  summary: 'Go to the manager of a secret reference, step by step, and say how far one gets.',
  details:
    'FILE holds the JSON of a reference that is not stored, as POST /v1/secret-references takes it; what is written without . and / is the id or slug of a stored one. The value itself is never shown. Exit code 1 when a step fails.',
  positionals: ['FILE|ID'],
  flags: { fresh: { description: 'log in anew, even where the running server has a login at hand' } },
  async run(call) {
    const [named = ''] = call.positionals
    const loaded = loadFor(call)
    const report = await explained(() =>
      /^[\w-]+$/.test(named)
        ? callAdmin(loaded, call.io, 'secret-references.test', { reference: named, fresh: call.flags.fresh })
        : callAdmin(loaded, call.io, 'secret-references.test-new', readReference(named)),
    )
    call.io.out(call.flags.json ? `${JSON.stringify(report)}\n` : linesOf(report))
    return report.ok ? EXIT.ok : EXIT.no
  },
})

export const secretReferencesCheck = defineCommand({
  name: 'secret-references check',
  summary: 'List the secret references that no grant or [outbound] allow covers any more.',
  details:
    'Goes by the configuration file as it is now, whatever a running server has read. Asks DNS, and no manager. Exit code 1 when there are any.',
  flags: {},
  async run(call: Call) {
    const loaded = loadFor(call)
    const { outbound, secret_managers, server } = loaded.config
    const settings = { outbound, machine_identity: secret_managers.machine_identity, listener: hostAndPort(server) }
    const { checked, uncovered } = await callAdmin(loaded, call.io, 'secret-references.check', settings)
    if (call.flags.json) call.io.out(`${JSON.stringify({ checked, uncovered })}\n`)
    else {
      for (const { id, slug, problem, message } of uncovered) call.io.out(`${id}  ${slug}  ${problem}: ${message}\n`)
      call.io.out(`${uncovered.length} of ${checked} secret references need another setting\n`)
    }
    return uncovered.length === 0 ? EXIT.ok : EXIT.no
  },
})

const hostAndPort = ({ host, port }: { host: string; port: number }) => ({ host, port })

/** @throws StartError 65 BAD_FILE; nothing of the file is repeated, it holds secrets */
function readReference(file: string): CreateSecretReference {
  const badFile = (problem: string) =>
    new StartError('BAD_FILE', EXIT.data, problem, 'name a file with the JSON body of POST /v1/secret-references')
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw badFile(`the file cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
  try {
    return parseStrict(text).value as CreateSecretReference
  } catch {
    throw badFile('the file is not valid JSON, or a key stands twice in it')
  }
}

/** The usual advice is about keys. */
async function explained<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    const { code, exitCode, message, fix } = failureOf(error)
    throw new StartError(code, exitCode, message, FIXES[code] ?? fix)
  }
}

const FIXES: Record<string, string> = {
  INVALID: 'correct the file, which is read as the body of POST /v1/secret-references',
  NOT_FOUND: 'use the id or slug of a stored reference; to test a file, write its path, such as ./reference.json',
}

type Step = SecretReferenceTest['steps'][number]

function linesOf({ ok, steps, fingerprint, version, used_cached_login: usedLogin }: SecretReferenceTest): string {
  const facts = [`version ${version ?? 'not told'}`, `fingerprint ${fingerprint}`]
  const end = ok ? `ok: ${facts.join(', ')}${usedLogin ? ', with the login at hand' : ''}` : 'failed'
  return `${[...steps.flatMap(linesOfStep), end].join('\n')}\n`
}

function linesOfStep({ step, ok, ms, code, message, manager_message }: Step): string[] {
  const name = step.padEnd('address'.length)
  if (ok === true) return [`${name}  ok  ${ms} ms`]
  if (ok === null) return [`${name}  ${code === 'not_reached' ? 'not reached' : 'not told apart'}`]
  const said = manager_message === null ? [] : [`         the manager says: ${printable(manager_message)}`]
  return [`${name}  failed  ${code}: ${message}`, ...said]
}

const printable = (text: string) => text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, '?')
