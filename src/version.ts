import pkg from '../package.json' with { type: 'json' }

/** Set by the build; `--define` replaces the name. */
declare const GATEHOUSE_COMMIT: string | undefined

/** The program's own version; the interface description has another one (decision 18). */
export const VERSION: string = pkg.version

/** The commit that the executable was built from, with `-dirty` when files differed from it. */
export const COMMIT: string = typeof GATEHOUSE_COMMIT === 'undefined' ? 'unknown' : GATEHOUSE_COMMIT
