/* firn, Apache-2.0; with preact, MIT. */
import{Z as e,_ as n}from"./chunk-KMSAEQ7S.js";var i="firn.recent",o=8,c=2e3;function f(){try{let t=JSON.parse(e(i)||"[]");return Array.isArray(t)?t.filter(r=>typeof r=="string").slice(0,o):[]}catch{return[]}}function p(t){let r=f();t.length<=c&&r[0]!==t&&n(i,JSON.stringify([t,...r.filter(s=>s!==t)].slice(0,o)))}export{f as a,p as b};
