/** Only the build can resolve these imports (scripts/build-plugin.ts); only a compiled binary may import this file. */
import license from "gzip:swagger-ui-dist/LICENSE" with { type: "file" };
import notice from "gzip:swagger-ui-dist/NOTICE" with { type: "file" };
import style from "gzip:swagger-ui-dist/swagger-ui.css" with { type: "file" };
import script from "gzip:swagger-ui-dist/swagger-ui-bundle.js" with { type: "file" };
import bundledLicenses from "gzip:swagger-ui-dist/swagger-ui-bundle.js.LICENSE.txt" with { type: "file" };

/** Paths to read the files from. */
export const embeddedViewer = { script, style, notice, license, bundledLicenses };
