// Not TypeScript: the bundler makes each of these files its text. scripts/page/build.ts builds them from ui/.
import style from "../../../ui/dist/app.css";
import script from "../../../ui/dist/app.js";

export const PAGE_FILES = { script, style };
