import { startServer } from '../src/http/server.ts'
import { openTestGatehouse } from '../test/support/gatehouse.ts'

// `npm run dev`: the server from source on throw-away data, started again at every change of a file. Every answer is
// checked against its contract, which production does not do.

const PORT = 8787

openTestGatehouse('sqlite', `[server]\nport = ${PORT}\n`).then(async ({ gatehouse, made, dir }) => {
  const { url } = await startServer(gatehouse, { checkAnswers: true })
  process.stdout.write(`NOT SAFE: for development only. All data is in ${dir} and new at every start.
URL        ${url}
Admin key  ${made.admin_key}
Workspace  ${made.workspace_slug}
`)
})
