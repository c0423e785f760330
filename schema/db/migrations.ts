// biome-ignore-all format: written by `bun run schema`

import postgres0001 from './migrations/postgres/0001_init.sql' with { type: 'text' }
import postgres0002 from './migrations/postgres/0002_secret_references.sql' with { type: 'text' }
import sqlite0001 from './migrations/sqlite/0001_init.sql' with { type: 'text' }
import sqlite0002 from './migrations/sqlite/0002_secret_references.sql' with { type: 'text' }

/** Append only: an applied migration is never edited (its checksum is stored). */
export const MIGRATIONS = {
  sqlite: [
    { version: 1, name: 'init', text: sqlite0001 },
    { version: 2, name: 'secret_references', text: sqlite0002 },
  ],
  postgres: [
    { version: 1, name: 'init', text: postgres0001 },
    { version: 2, name: 'secret_references', text: postgres0002 },
  ],
}
