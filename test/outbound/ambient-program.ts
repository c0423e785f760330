import { createOutbound } from '../../src/outbound/outbound.ts'
import { OutboundError } from '../../src/outbound/transport.ts'

// One request, as a process of its own, whose surroundings try to change where it goes and whom it trusts:
//   ambient-program.ts PORT [CA]
// Prints the status, or how it failed.

const [port = '', ca] = process.argv.slice(2)
const outbound = createOutbound({
  config: { allow: [], allow_http: [], connect: { 'vault.example:443': `127.0.0.1:${port}` }, proxy: '' },
  ownListeners: () => [],
})
const transport = outbound.open({ ca })
transport
  .send({
    method: 'GET',
    url: 'https://vault.example/',
    headers: { 'x-vault-token': 't' },
    signal: AbortSignal.timeout(5_000),
    reach: 'listed',
  })
  .then(
    ({ status }) => process.stdout.write(`${status}`),
    (error) => process.stdout.write(error instanceof OutboundError ? error.failure : `${error}`),
  )
  .finally(() => transport.close())
