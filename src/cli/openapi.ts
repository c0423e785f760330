import { defineCommand } from './command.ts'

export const openapi = defineCommand({
  name: 'openapi',
  summary: 'Print the description of the HTTP interface (OpenAPI, JSON).',
  flags: {},
  async run({ io }) {
    const { openApiDocument } = await import('../http/openapi.ts')
    io.out(`${JSON.stringify(await openApiDocument(), null, 2)}\n`)
    return undefined
  },
})
