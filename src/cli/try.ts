import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../config/load.ts'
import { openGatehouse } from '../gatehouse.ts'
import { createLog } from '../log.ts'
import { EXIT, StartError } from '../start-error.ts'
import { ADMIN_COMMANDS, type AdminOutput } from './admin.ts'
import { defineCommand, type Io } from './command.ts'
import { createInstallation, pathsBelow } from './init.ts'

export const tryOut = defineCommand({
  name: 'try',
  summary: 'Run everything in a throw-away folder, with a sample prompt, and render it.',
  details: 'Needs no configuration. Nothing of it is left afterwards; not meant for real keys.',
  flags: { once: { description: 'end after the first render' } },
  async run({ flags, io }) {
    const asked = io.stopRequested(1)
    const dir = mkdtempSync(join(tmpdir(), 'gatehouse-try-'))
    try {
      await inThrowAwayFolder(dir, io, flags, asked)
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
    return undefined
  },
})

async function inThrowAwayFolder(
  dir: string,
  io: Io,
  flags: { once: boolean; json: boolean },
  asked: Promise<void>,
): Promise<void> {
  const paths = pathsBelow(dir)
  createInstallation(paths)
  const loaded = loadConfig({ path: paths.config, env: { GATEHOUSE_SERVER_PORT: '0' } })
  const gatehouse = await openGatehouse(loaded, createLog({ level: 'warn', write: io.err }))
  try {
    const made = await ADMIN_COMMANDS.bootstrap.run(
      { gatehouse, uid: process.getuid?.() ?? 0 },
      { organisation: 'Try', email: 'you@example.com' },
    )
    const { startServer } = await import('../http/server.ts')
    const server = await startServer(gatehouse)
    try {
      const sample = await renderSample(server.url, made)
      io.out(
        flags.json
          ? `${JSON.stringify({ url: server.url, admin_key: made.admin_key, ...sample })}\n`
          : told(server.url, made.admin_key, sample),
      )
      if (flags.once) return
      io.err(`Running in ${dir} until Ctrl-C; then all of it is removed.\n`)
      await asked
    } finally {
      await server.stop()
    }
  } finally {
    await gatehouse.close()
  }
}

interface Sample {
  prompt: string
  request: { variables: Record<string, unknown> }
  answer: unknown
}

/** What a first user would do over HTTP: a partial, a prompt with a section, a label on its version, a render by label. */
async function renderSample(url: string, made: AdminOutput<'bootstrap'>): Promise<Sample> {
  const call = caller(`${url}/v1`, made.admin_key)
  const partial = await call('POST', '/prompts/partials', {
    name: 'tone',
    string: 'Answer in one friendly sentence.',
    workspace_id: made.workspace_id,
  })
  const messages = [
    { role: 'system', content: `You work for {{company}}. {{>${partial['slug']}}}` },
    { role: 'user', content: 'I am {{name}}.{{#orders}} Order {{id}} is {{state}}.{{/orders}} When does it come?' },
  ]
  const prompt = await call('POST', '/prompts', {
    name: 'order status',
    collection_id: made.collection_id,
    string: JSON.stringify(messages),
    parameters: { temperature: 0.2 },
    model: 'gpt-4o-mini',
    virtual_key: 'openai',
  })
  const labels = (await call('GET', '/labels'))['data'] as { id: string; name: string }[]
  const production = labels.find(({ name }) => name === 'production')
  await call('PUT', `/prompts/${prompt['id']}/versions/${prompt['version_id']}`, { label_id: production?.id })
  const request = { variables: { company: 'Example Ltd', name: 'Ada', orders: [{ id: 'A-17', state: 'on its way' }] } }
  const promptId = `${prompt['slug']}@production`
  return { prompt: promptId, request, answer: await call('POST', `/prompts/${promptId}/render`, request) }
}

function caller(base: string, key: string) {
  return async (method: string, path: string, body?: unknown): Promise<Record<string, unknown>> => {
    const headers = { 'x-service-api-key': key, 'content-type': 'application/json' }
    const response = await fetch(base + path, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const answer = (await response.json()) as Record<string, unknown>
    if (!response.ok)
      throw new StartError(
        'TRY_FAILED',
        EXIT.internal,
        `${method} ${path} answered ${response.status}: ${answer['message']}`,
        'report this as a fault of gatehouse',
      )
    return answer
  }
}

function told(url: string, adminKey: string, { prompt, request, answer }: Sample): string {
  return [
    JSON.stringify(answer, null, 2),
    '',
    `URL        ${url}`,
    `Admin key  ${adminKey}`,
    '',
    `curl -s ${url}/v1/prompts/${prompt}/render -H 'x-service-api-key: ${adminKey}' -H 'content-type: application/json' -d '${JSON.stringify(request)}'`,
    '',
  ].join('\n')
}
