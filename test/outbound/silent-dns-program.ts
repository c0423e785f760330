import { createSocket } from 'node:dgram'
import { readFile } from 'node:fs/promises'
import { createOutbound } from '../../src/outbound/outbound.ts'

// Reads a file while requests wait for a name server that never answers: silent-dns-program.ts ADDRESS
// Prints how many questions it got by then.

const [address = ''] = process.argv.slice(2)
let asked = 0
const nameServer = createSocket('udp4', () => void asked++)
await new Promise<void>((bound) => nameServer.bind(53, address, bound))
const transport = createOutbound({
  config: { allow: [], allow_http: [], connect: {}, proxy: '' },
  ownListeners: () => [],
}).open()
for (let i = 0; i < 16; i++) {
  const request = { method: 'GET', url: `https://v${i}.example/`, headers: {}, reach: 'listed' } as const
  transport.send({ ...request, signal: AbortSignal.timeout(60_000) }).catch(() => {})
}
while (asked === 0) await Bun.sleep(5)
await readFile(import.meta.path)
process.stdout.write(`${asked}`)
process.exit()
