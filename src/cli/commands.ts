import { auditPrune, auditRotateKey, auditVerify } from './audit.ts'
import { auditExport } from './audit-export.ts'
import { bootstrap } from './bootstrap.ts'
import type { Command } from './command.ts'
import { configCheck, configShow } from './config.ts'
import { init } from './init.ts'
import { keysCreate, keysEndTransition, keysList, keysRevoke } from './keys.ts'
import { masterKeyNew, rotateDataKey, rotateMasterKey } from './master-key.ts'
import { openapi } from './openapi.ts'
import { ownerTransfer } from './owner.ts'
import { secretReferencesCheck, secretReferencesTest } from './secret-references.ts'
import { serve } from './serve.ts'
import { tryOut } from './try.ts'
import { version } from './version.ts'

/** Every command, in the order of --help. */
export const COMMANDS: readonly Command[] = [
  init,
  bootstrap,
  tryOut,
  serve,
  configCheck,
  configShow,
  keysCreate,
  keysList,
  keysRevoke,
  keysEndTransition,
  ownerTransfer,
  auditVerify,
  auditExport,
  auditPrune,
  auditRotateKey,
  masterKeyNew,
  rotateMasterKey,
  rotateDataKey,
  secretReferencesTest,
  secretReferencesCheck,
  openapi,
  version,
]
