/** Style of the pages: system fonts, light or dark as the system prefers, one column on a narrow screen. */
export const STYLE = `
:root{color-scheme:light dark;--back:#fff;--text:#1d2328;--dim:#5b6670;--line:#dfe3e7;--code:#f3f5f7;--link:#0b5cad;
--get:#0a6b3d;--post:#0b5cad;--patch:#8a5a00;--delete:#b3261e}
@media(prefers-color-scheme:dark){:root{--back:#14181c;--text:#e3e7ea;--dim:#9aa5ae;--line:#2c343b;--code:#1f262c;
--link:#7ab8ff;--get:#5fd39a;--post:#7ab8ff;--patch:#f0bd5b;--delete:#ff8a80}}
*{box-sizing:border-box}
html{scroll-padding-top:1rem}
body{margin:0;background:var(--back);color:var(--text);font:16px/1.55 system-ui,sans-serif;overflow-wrap:anywhere}
a{color:var(--link);text-decoration:none}a:hover,main a,header a{text-decoration:underline}
code{font:0.875em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;background:var(--code);padding:.1em .3em;border-radius:.25em}
pre{background:var(--code);padding:.7rem .9rem;border-radius:.35em;overflow-x:auto;margin:.5rem 0}
pre code{background:none;padding:0}
h1,h2,h3,h4{line-height:1.25;margin:0}
h1{font-size:1.75rem}
h2{font-size:1.4rem;margin:3rem 0 1rem;padding-bottom:.4rem;border-bottom:1px solid var(--line)}
h3{font-size:1.05rem}h3 code{background:none;padding:0;font-size:1em}
h3 a{color:inherit;text-decoration:none}
h4{font-size:.8rem;text-transform:uppercase;letter-spacing:.05em;color:var(--dim);margin:1.1rem 0 .3rem}
p{margin:.35rem 0}
.frame{display:grid;grid-template-columns:17rem minmax(0,1fr);max-width:78rem;margin:0 auto}
header{grid-column:1/-1;padding:1.5rem 1rem;border-bottom:1px solid var(--line);min-width:0}
header p:not(.lead){max-width:52rem}
nav{position:sticky;top:0;align-self:start;max-height:100vh;overflow-y:auto;padding:1.5rem 1rem;font-size:.875rem;
border-right:1px solid var(--line)}
nav h2{font-size:.8rem;margin:1.2rem 0 .3rem;padding:0;border:0}
nav ul{list-style:none;margin:0;padding:0}nav li{padding:.12rem 0}nav code{background:none;padding:0}
nav a{color:inherit}
main{padding:1.5rem 2rem 6rem;min-width:0}
[hidden]{display:none!important}
nav label{font-weight:600;font-size:.8rem}
nav input{font:inherit;color:inherit;background:var(--back);border:1px solid var(--line);border-radius:.3rem;padding:.25rem .5rem;width:100%}
nav output{display:block;min-height:1.4em;color:var(--dim);font-size:.8rem}
.guide h3{margin-top:.8rem}
.plain{max-width:44rem;margin:0 auto}
.lead{color:var(--dim)}
.route,.schema{padding:1.25rem 0;border-bottom:1px solid var(--line)}
.route:target h3,.schema:target h3{outline:2px solid var(--link);outline-offset:.4rem;border-radius:.1rem}
.method{font:600 .8em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;color:var(--dim)}
.get{color:var(--get)}.post{color:var(--post)}.patch{color:var(--patch)}.delete{color:var(--delete)}
nav li a{display:flex;gap:.3rem;align-items:baseline}nav .method{flex:0 0 3.2rem}
.open,.place,.bounds,.closing,.content{color:var(--dim);font-size:.875rem}
.open{border:1px solid var(--line);border-radius:1rem;padding:0 .5rem;white-space:nowrap}
.required{color:var(--delete);padding-left:.15rem}
table.fields{border-collapse:collapse;width:100%;font-size:.925rem}
table.fields th{width:11rem;text-align:left;font-weight:400;overflow-wrap:anywhere}
table.fields th,table.fields td{vertical-align:top;padding:.35rem .75rem .35rem 0;border-top:1px solid var(--line)}
table.fields table.fields{margin:.4rem 0 0 .1rem}
table.fields table.fields th{width:10rem}
td>p:first-child{margin-top:0}
@media(max-width:52rem){
.frame{display:block}
pre{white-space:pre-wrap}
nav{position:static;max-height:none;border-right:0;border-bottom:1px solid var(--line);padding:1rem}
nav ul{columns:15rem}
main{padding:1rem 1rem 4rem}
table.fields,table.fields tbody,table.fields tr,table.fields th,table.fields td{display:block;width:auto}
table.fields table.fields th{width:auto}
table.fields td{border-top:0;padding:0 0 .35rem 1rem}
table.fields table.fields{border-left:2px solid var(--line);padding-left:.6rem}
}
`;
