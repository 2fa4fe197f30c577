/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flame graph in one file, to be kept or sent: the page loads nothing from elsewhere. The data is
 * the JSON of /api/flamegraph; '<' is written as \u003c, so that no name ends the script. Names
 * reach the page as text only.
 */
#include "query/write/formats.h"
#include "query/write/write.h"

/* clang-format off */
static const char head[] =
	"<!doctype html>\n"
	"<html lang=en>\n"
	"<meta charset=utf-8>\n"
	"<meta name=viewport content='width=device-width'>\n"
	"<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; "
	"script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\n"
	"<title>firn: flame graph</title>\n"
	"<style>\n"
	":root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--dim:#667}\n"
	"@media(prefers-color-scheme:dark){:root{--bg:#15181c;--fg:#e6e8eb;--dim:#"
	"99a}}\n"
	"*{box-sizing:border-box}\n"
	"body{margin:0;font:13px system-ui,sans-serif;background:var(--bg);color:var"
	"(--fg)}\n"
	"header{display:flex;gap:8px;align-items:center;padding:8px 12px;flex-wrap:"
	"wrap}\n"
	"h1{font-size:14px;margin:0 8px 0 0}\n"
	"input,button{font:inherit;padding:3px 8px}\n"
	"#about{padding:0 12px 8px;min-height:4.2em;color:var(--dim);overflow-wrap:"
	"anywhere}\n"
	"#about b{color:var(--fg)}\n"
	"canvas{display:block;width:100%;outline-offset:-2px}\n"
	"</style>\n"
	"<header><h1 id=title></h1>\n"
	"<label>Search <input id=search type=search spellcheck=false></label>\n"
	"<button id=reset>Whole graph</button><span id=found></span></header>\n"
	"<div id=about aria-live=polite></div>\n"
	"<canvas id=graph tabindex=0 role=img aria-label='Flame graph: arrows move, "
	"Enter zooms, Escape goes back'></canvas>\n"
	"<script type=application/json id=data>";

static const char tail[] =
	"</script>\n"
	"<script>\n"
	"(()=>{'use strict';\n"
	"const D=JSON.parse(document.getElementById('data').textContent),N=D.nodes,S"
	"=D.strings;\n"
	"const n=N.parent.length,ROW=18,$=id=>document.getElementById(id),cv=$('"
	"graph'),cx=cv.getContext('2d');\n"
	"const kids=Array.from({length:n},()=>[]),depth=new Int32Array(n);\n"
	"for(let i=1;i<n;i++){kids[N.parent[i]].push(i);depth[i]=depth[N.parent[i]]+"
	"1}\n"
	"let top=0,sel=0,hit=null,boxes=[];\n"
	"const units={nanoseconds:[[3600e9,'h'],[60e9,'min'],[1e9,'s'],[1e6,'ms'],["
	"1e3,'µs'],[1,'ns']],\n"
	"bytes:[[2**40,'TiB'],[2**30,'GiB'],[2**20,'MiB'],[1024,'KiB'],[1,'B']]};\n"
	"function value(v){const u=units[D.unit]||[[1e9,'G'],[1e6,'M'],[1e3,'k'],[1,"
	"'']];\n"
	"const a=Math.abs(v),[d,s]=u.find(([d])=>a>=d)||u[u.length-1];\n"
	"return(v/d).toLocaleString(undefined,{maximumFractionDigits:2})+' '+(s||D."
	"unit)}\n"
	"function share(v,t){return t?(100*v/t).toFixed(2)+' %':''}\n"
	"function name(i){return i?S[N.name[i]]:'all'}\n"
	"function color(i){if(!i)return'#9aa3ad';let h=2166136261;const s=S[N.binary"
	"[i]]||name(i);\n"
	"for(let k=0;k<s.length;k++)h=Math.imul(h^s.charCodeAt(k),16777619);\n"
	"const kernel=N.kind[i]===2,hue=kernel?24:(h>>>0)%300+40;\n"
	"return'hsl('+hue+' '+(kernel?70:42)+'% '+(58+(h>>>9)%14)+'%)'}\n"
	"function layout(w){boxes=[];const up=[];for(let i=top;i;i=N.parent[i])up."
	"unshift(N.parent[i]);\n"
	"up.forEach((i,d)=>boxes.push([i,0,d,w]));\n"
	"const todo=[[top,0,w]];while(todo.length){const[i,x,width]=todo.pop();boxes"
	".push([i,x,depth[i],width]);\n"
	"let at=x;for(const k of kids[i]){const kw=N.total[i]?width*Math.max(0,N."
	"total[k])/N.total[i]:0;\n"
	"if(kw>=0.4)todo.push([k,at,kw]);at+=kw}}}\n"
	"function draw(){const w=cv.clientWidth,r=devicePixelRatio||1;layout(w);\n"
	"const rows=boxes.reduce((m,b)=>Math.max(m,b[2]),0)+1;cv.style.height=rows*"
	"ROW+'px';\n"
	"cv.width=Math.round(w*r);cv.height=Math.round(rows*ROW*r);cx.scale(r,r);cx."
	"font='12px system-ui,sans-serif';\n"
	"cx.textBaseline='middle';\n"
	"for(const[i,x,d,width]of boxes){const m=hit&&hit[i];cx.fillStyle=hit?m?'#"
	"d81b60':'#8884':color(i);\n"
	"cx.fillRect(x,d*ROW,Math.max(width-0.5,0.3),ROW-1);\n"
	"if(i===sel){cx.strokeStyle=getComputedStyle(document.body).color;cx."
	"lineWidth=2;cx.strokeRect(x+1,d*ROW+1,Math.max(width-2.5,1),ROW-3)}\n"
	"if(width>24){cx.save();cx.beginPath();cx.rect(x+3,d*ROW,width-6,ROW);cx."
	"clip();\n"
	"cx.fillStyle=hit&&!m?getComputedStyle(document.body).color:m?'#fff':'#111';"
	"cx.fillText(name(i),x+4,d*ROW+ROW/2);cx.restore()}}}\n"
	"function about(i){const a=$('about');a.textContent='';const b=document."
	"createElement('b');b.textContent=name(i);a.append(b);\n"
	"const f=S[N.file[i]],where=[S[N.binary[i]],f?f+(N.line[i]?':'+N.line[i]:'')"
	":'',N.inlined[i]?'inlined':''].filter(Boolean).join(' · ');\n"
	"a.append(document.createElement('br'),value(N.total[i])+' ('+share(N.total["
	"i],N.total[0])+' of all'+\n"
	"(top?', '+share(N.total[i],N.total[top])+' of this view':'')+'), self '+"
	"value(N.self[i]),document.createElement('br'),where)}\n"
	"function select(i){sel=i;about(i);draw()}\n"
	"function zoom(i){top=i;select(i)}\n"
	"function at(e){const b=cv.getBoundingClientRect(),x=e.clientX-b.left,d=Math"
	".floor((e.clientY-b.top)/ROW);\n"
	"for(const[i,l,row,w]of boxes)if(row===d&&x>=l&&x<l+w)return i;return-1}\n"
	"cv.onclick=e=>{const i=at(e);if(i>=0)zoom(i)};\n"
	"cv.onmousemove=e=>{const i=at(e);about(i<0?sel:i);cv.style.cursor=i<0?'"
	"default':'pointer'};\n"
	"cv.onkeydown=e=>{const p=N.parent[sel],s=kids[p],k=s.indexOf(sel);\n"
	"const to={ArrowUp:sel===top?sel:p,ArrowDown:kids[sel][0],ArrowRight:s[k+1],"
	"ArrowLeft:s[k-1]}[e.key];\n"
	"if(e.key==='Enter')zoom(sel);else if(e.key==='Escape')zoom(N.parent[top]);"
	"else if(to!==undefined)select(to);else return;e.preventDefault()};\n"
	"$('search').oninput=e=>{const q=e.target.value.toLowerCase();hit=null;$('"
	"found').textContent='';\n"
	"if(q){const is=S.map(s=>s.toLowerCase().includes(q));hit=new Uint8Array(n);"
	"const under=new Uint8Array(n);let sum=0;\n"
	"for(let i=1;i<n;i++){hit[i]=is[N.name[i]];under[i]=under[N.parent[i]]||hit["
	"i];if(hit[i]&&!under[N.parent[i]])sum+=N.total[i]}\n"
	"$('found').textContent=value(sum)+', '+share(sum,N.total[0])}draw()};\n"
	"$('reset').onclick=()=>{$('search').value='';hit=null;$('found')."
	"textContent='';zoom(0)};\n"
	"$('title').textContent=value(D.total)+(D.samples==null?'':' in '+"
	"D.samples.toLocaleString()+' samples');\n"
	"addEventListener('resize',draw);matchMedia('(prefers-color-scheme:dark)')."
	"onchange=draw;select(0)})();\n"
	"</script>\n";
/* clang-format on */

enum status query_export_html(const struct query_flame *f, struct buf *b, struct err *e)
{
	CLEANUP(buf_deinit) struct buf json;
	buf_init(&json, b->max);
	query_flame_json(f, false, &json);
	enum status s = query_written(&json, e);
	if (s != OK)
		return s;
	buf_put(b, head, sizeof(head) - 1);
	for (size_t at = 0; at < json.len;) {
		size_t len = str_index(str_make(json.data + at, json.len - at), '<');
		buf_put(b, json.data + at, len);
		at += len;
		if (at < json.len)
			buf_cstr(b, "\\u003c");
		at++;
	}
	buf_put(b, tail, sizeof(tail) - 1);
	return OK;
}
