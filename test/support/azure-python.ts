import { join } from 'node:path'

/**
 * Microsoft's Azure SDK for Python.
 *
 * @returns the folder for PYTHONPATH; undefined, with the reason printed, where it is not here
 * @throws Error with the reason, where GATEHOUSE_TEST_MANAGERS=required: there, it is fetched if need be
 */
export function findAzurePython(): string | undefined {
  const isRequired = process.env['GATEHOUSE_TEST_MANAGERS'] === 'required'
  const script = join(import.meta.dir, '../servers/azure-python.sh')
  const { success, stdout, stderr } = Bun.spawnSync([script, isRequired ? 'obtain' : 'find'])
  if (success) return stdout.toString().trim()
  const reason = stderr.toString().trim().split('\n').at(-1)
  if (isRequired) throw new Error(reason)
  process.stderr.write(`skipped: ${reason}\n`)
  return undefined
}

/** Runs azure-sdk.py, which says what it takes and prints. */
export async function runAzurePython(folder: string, ...argv: string[]): Promise<unknown> {
  const script = join(import.meta.dir, 'azure-sdk.py')
  const env = { PATH: process.env['PATH'] ?? '', PYTHONPATH: folder }
  const child = Bun.spawn(['python3', script, ...argv], { env, stdout: 'pipe', stderr: 'pipe' })
  const [said, complaint] = await Promise.all([child.stdout.text(), child.stderr.text()])
  if ((await child.exited) !== 0) throw new Error(complaint)
  return JSON.parse(said)
}
