import { afterAll, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { parseExact, readGoldenCases } from '../prompts/golden-case.ts'
import { openGoldenRunner } from '../prompts/golden-runner.ts'

// Spec 4, rule 2: what render answers can be passed on as the body of a model call. Here with the client that most
// callers use, and a model that writes down what it was sent.

interface Recorded {
  path: string
  text: string
}

const recorded: Recorded[] = []
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    const text = await request.text()
    recorded.push({ path: new URL(request.url).pathname, text })
    const isStream = (JSON.parse(text) as { stream?: unknown }).stream === true
    return isStream
      ? new Response('data: [DONE]\n\n', { headers: { 'content-type': 'text/event-stream' } })
      : Response.json({ id: 'r', choices: [] })
  },
})
const runner = openGoldenRunner()
const client = new OpenAI({ apiKey: 'unused', baseURL: `http://127.0.0.1:${server.port}/v1`, maxRetries: 0 })

afterAll(async () => {
  await server.stop(true)
  await runner.close()
})

/** Sends `data` with the call of its kind and answers what arrived. */
async function passOn(data: Record<string, unknown>): Promise<Recorded | undefined> {
  recorded.length = 0
  if ('messages' in data) await client.chat.completions.create(data as unknown as ChatBody)
  else await client.completions.create(data as unknown as TextBody)
  return recorded[0]
}

type ChatBody = Parameters<typeof client.chat.completions.create>[0]
type TextBody = Parameters<typeof client.completions.create>[0]

describe('what render answers is sent to the model as it is', () => {
  for (const golden of readGoldenCases().filter(({ expected }) => 'data' in expected)) {
    test(golden.name.replaceAll('-', ' '), async () => {
      const { answer } = await runner.run(golden)
      const { data } = parseExact(answer.text) as { data: Record<string, unknown> }
      const arrived = await passOn(data)
      expect(arrived?.path).toBe('messages' in data ? '/v1/chat/completions' : '/v1/completions')
      expect(parseExact(arrived?.text ?? '')).toEqual(data)
    })
  }

  test('and no digit of a big integer is lost on the way', async () => {
    const data = parseExact('{"model":"m","messages":[{"role":"user","content":"x"}],"seed":9223372036854775807}')
    expect((await passOn(data as Record<string, unknown>))?.text).toContain('"seed":9223372036854775807')
  })
})
