import { createTrail } from '../../src/audit/audited.ts'
import { openDatabase } from '../../src/db/open.ts'
import { TEST_AUDIT_KEYS } from './audit.ts'

// A process to be killed: `committer.ts DATA_DIR` stores organisations in eight lanes and prints the id of each one
// that was acknowledged; `committer.ts DATA_DIR COUNT` stops after so many; `hold` only keeps the database open.

const [dataDir, mode] = Bun.argv.slice(2)
const db = await openDatabase({ dialect: 'sqlite', dataDir: dataDir!, create: true })
process.stdout.write('open\n')
if (mode === 'hold') await Bun.sleep(60_000)

const { audited } = createTrail(db, { keys: () => TEST_AUDIT_KEYS })
const limit = mode === undefined ? Number.POSITIVE_INFINITY : Number(mode)
let count = 0

async function lane(): Promise<void> {
  while (count++ < limit) {
    const id = Bun.randomUUIDv7()
    const actor = { kind: 'cli', uid: 0, organisationId: 'test', command: 'committer' } as const
    await audited(actor, { action: 'organisations.create', resourceId: id }, async (tx) => {
      await tx.insert(tx.tables.organisations).values({ id, name: 'x'.repeat(500), createdAt: tx.now })
    })
    process.stdout.write(`${id}\n`)
  }
}

await Promise.all(mode === undefined ? Array.from({ length: 8 }, lane) : [lane()])
await db.close()
