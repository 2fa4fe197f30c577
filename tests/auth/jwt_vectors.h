/* SPDX-License-Identifier: Apache-2.0 */
/* Made by jwt_maker.py. */
#pragma once

/* clang-format off */
#define JWT_KEYS \
	"{\"keys\": [{\"kty\": \"RSA\", \"use\": \"enc\", \"kid\": \"enc\", \"n\": \"5uA6ZiB4-EIa-kLGj-ZxUUk5r" \
	"B98hgCqM_40147Ajz4sM25Zqr_gyuzMWX58JOwTeqOiFr1COZ6UmWADbv50WXe3ynflDf46Sp_dE6d4T1OAQ" \
	"PC-Q0Opl0a9UKaerD2c-SREwIbnOQAEAodTz6Xk1fe6OpPunSHlQlkd2KejzTgrMJlgQAuB3pjmulrm_a6r0" \
	"LGYDMkb-nYTfoFWkUy1zSmgFSIJ2p6jCuJ-SwBzazXeYQGep-Z589KNTfWr9YEhY_w7qCtevuKW9TFfDt4Mw" \
	"8aIRdvo3WdYxRZHUgSbDRqMgdfoOTWP934CPeAnZg0QX1lXerFtAwWBtUXaOLbplw\", \"e\": \"AQAB\"}, {\"" \
	"kty\": \"RSA\", \"use\": \"sig\", \"alg\": \"RS256\", \"kid\": \"r\", \"n\": \"5uA6ZiB4-EIa-kLGj-ZxUUk" \
	"5rB98hgCqM_40147Ajz4sM25Zqr_gyuzMWX58JOwTeqOiFr1COZ6UmWADbv50WXe3ynflDf46Sp_dE6d4T1O" \
	"AQPC-Q0Opl0a9UKaerD2c-SREwIbnOQAEAodTz6Xk1fe6OpPunSHlQlkd2KejzTgrMJlgQAuB3pjmulrm_a6" \
	"r0LGYDMkb-nYTfoFWkUy1zSmgFSIJ2p6jCuJ-SwBzazXeYQGep-Z589KNTfWr9YEhY_w7qCtevuKW9TFfDt4" \
	"Mw8aIRdvo3WdYxRZHUgSbDRqMgdfoOTWP934CPeAnZg0QX1lXerFtAwWBtUXaOLbplw\", \"e\": \"AQAB\"}, " \
	"{\"kty\": \"EC\", \"crv\": \"P-256\", \"kid\": \"e\", \"x\": \"aRylQk7M64MpghTVH-_hU0bZLIlwQiwP1gGO" \
	"yGhLd7U\", \"y\": \"VaQeE6HWni4uxkNLdDImLWYA0eMcuTgfJsqMAtr_FM4\"}, {\"kty\": \"OKP\", \"crv\":" \
	" \"Ed25519\", \"kid\": \"d\", \"x\": \"51J6Qbh_IowaM3BPnIhGSz9jK8H4bUZmroZmbuXYnBU\"}, {\"kty\":" \
	" \"oct\", \"kid\": \"s\", \"k\": \"AAAA\"}]}"
#define JWT_RS256 \
	"eyJhbGciOiAiUlMyNTYiLCAidHlwIjogIkpXVCIsICJraWQiOiAiciJ9.eyJpc3MiOiAiaHR0cHM6Ly9pc3N" \
	"1ZXIuZXhhbXBsZSIsICJhdWQiOiBbIm90aGVyIiwgImZpcm4iXSwgInN1YiI6ICJhbGljZSIsICJleHAiOiA" \
	"0MTAyNDQ0ODAwLCAiZ3JvdXBzIjogWyJzdGFmZiIsICJwcm9maWxlcnMiXSwgIm9yZyI6ICJzaG9wIn0.JVy" \
	"tjtwbXfpQ3vCix0Rpc06SvuWnPleV6BygE8UVI2V_jnBY9bVS08LxcEx0d3J82HKMwqNIwL34y1Go6w7RcB6" \
	"6dVNjYR520K29s_yEhqboHQj8W1Q35s6idPhbGnF8Q_N_ZxLG77WnbiXkG3p3JjiYC2dfvRwWmig5pdGy7mw" \
	"zdUtCo0AyhptH77J6WkPF2n-u6h55X7H56lX4bZGLiTLVmaZF4MwYerhVZVXk-j1aV0OjWhb99fnBntikKHY" \
	"TiWG106RJ_cnnnWrnp68Ns3N334fIQlRMIgmPYYUKe7kGc1L0-quO7Qex_9gXYjtEHHkzNv_nQQzMaJkU6o6" \
	"WmQ"
#define JWT_ES256 \
	"eyJhbGciOiAiRVMyNTYiLCAidHlwIjogIkpXVCIsICJraWQiOiAiZSJ9.eyJpc3MiOiAiaHR0cHM6Ly9pc3N" \
	"1ZXIuZXhhbXBsZSIsICJhdWQiOiBbIm90aGVyIiwgImZpcm4iXSwgInN1YiI6ICJhbGljZSIsICJleHAiOiA" \
	"0MTAyNDQ0ODAwLCAiZ3JvdXBzIjogWyJzdGFmZiIsICJwcm9maWxlcnMiXSwgIm9yZyI6ICJzaG9wIn0.wwy" \
	"1uObmkKYlB9xsjXozJH9oIJQbjxuvFKRpxoqfaT0GqSOppEIcQSG5lgNHCIJ87ItjMYZbmgHPtt8DngKSYw"
#define JWT_EDDSA \
	"eyJhbGciOiAiRWREU0EiLCAidHlwIjogIkpXVCIsICJraWQiOiAiZCJ9.eyJpc3MiOiAiaHR0cHM6Ly9pc3N" \
	"1ZXIuZXhhbXBsZSIsICJhdWQiOiBbIm90aGVyIiwgImZpcm4iXSwgInN1YiI6ICJhbGljZSIsICJleHAiOiA" \
	"0MTAyNDQ0ODAwLCAiZ3JvdXBzIjogWyJzdGFmZiIsICJwcm9maWxlcnMiXSwgIm9yZyI6ICJzaG9wIn0.UXA" \
	"uDTwG8HCIF1h1DVafGvhUhmmpvlowhhKj6gnqelGdmBW-_N6aubbLL8nIQyTRmPOQ01C5rsh_Lf5HPlwZDw"
#define JWT_NO_KID \
	"eyJhbGciOiAiUlMyNTYiLCAidHlwIjogIkpXVCJ9.eyJpc3MiOiAiaHR0cHM6Ly9pc3N1ZXIuZXhhbXBsZSI" \
	"sICJhdWQiOiAiZmlybiIsICJzdWIiOiAiYWxpY2UiLCAiZXhwIjogNDEwMjQ0NDgwMCwgImdyb3VwcyI6IFs" \
	"ic3RhZmYiLCAicHJvZmlsZXJzIl0sICJvcmciOiAic2hvcCJ9.vreUlQTqr5rBzdunjmGC0BCSzjzIGzeYFA" \
	"NItPv4GyTe7jFEsgYhupYnakVbLVIqtHib4Niy3yEtNNdL9cWPYXGWNRX3IxRa4D-DRrieKEU2pkywV4YghW" \
	"W7ior4ET_qTMYJnyiT7tgmu2147XAoHKmmVLKhrz880BZcVuG5TWRke5gZJpCbmzlfdR_ZbOKdnWlBfRsVuL" \
	"05k6_t8bDZiLRhcbqX9JdgvLMDoOU52Dt6xUM9xA48JrRwV-ZlBTs_LGgfaVlBaKQrsjm5P5IVb9paQYPJ5T" \
	"AFgQT245cUTL7ltGnqThEozshmzY30YMIxPuhM17CyofTLdch-tTPi4Q"
#define JWT_NONE \
	"eyJhbGciOiAibm9uZSIsICJ0eXAiOiAiSldUIn0.eyJpc3MiOiAiaHR0cHM6Ly9pc3N1ZXIuZXhhbXBsZSIs" \
	"ICJhdWQiOiBbIm90aGVyIiwgImZpcm4iXSwgInN1YiI6ICJhbGljZSIsICJleHAiOiA0MTAyNDQ0ODAwLCAi" \
	"Z3JvdXBzIjogWyJzdGFmZiIsICJwcm9maWxlcnMiXSwgIm9yZyI6ICJzaG9wIn0."
#define JWT_HS256 \
	"eyJhbGciOiAiSFMyNTYiLCAidHlwIjogIkpXVCIsICJraWQiOiAiciIsICJyZWFsbHkiOiAiUlMyNTYifQ.e" \
	"yJpc3MiOiAiaHR0cHM6Ly9pc3N1ZXIuZXhhbXBsZSIsICJhdWQiOiBbIm90aGVyIiwgImZpcm4iXSwgInN1Y" \
	"iI6ICJhbGljZSIsICJleHAiOiA0MTAyNDQ0ODAwLCAiZ3JvdXBzIjogWyJzdGFmZiIsICJwcm9maWxlcnMiX" \
	"SwgIm9yZyI6ICJzaG9wIn0.SFS4YK6AKsgMsCRJ5aL1zVs4Km7ZOkUQ78vPdtZEsp3_wTH_ZAvExMf7RMraN" \
	"faGq35wR75vO69egBg1Z6f0k_PqZ42TwGwBN3CJ1dTrC2V5qgfZ4w2Zkf7nkXkUpUfEX1QWl7C6R6-7MYD-L" \
	"v6JtnCw6V1hDl0oJNip7Z3PRdS244LBkVTtmQEbiEKuOIJKW_C8zg9kyVtMmdGutasAea4tGlvut0WP-ot3y" \
	"1ckc6kovJgjT1kysSS7xaIgcRb9RmwK2EAIWLMImIdjpDSmEdD_Z0PgXfhrKMxA2czWAppTNm90iHOkKMaqn" \
	"Hh6fzXR4veFRCnYeoIYpN98Uw2gEA"
#define JWT_OTHER_KEY \
	"eyJhbGciOiAiUlMyNTYiLCAidHlwIjogIkpXVCIsICJraWQiOiAidW5rbm93biJ9.eyJpc3MiOiAiaHR0cHM" \
	"6Ly9pc3N1ZXIuZXhhbXBsZSIsICJhdWQiOiBbIm90aGVyIiwgImZpcm4iXSwgInN1YiI6ICJhbGljZSIsICJ" \
	"leHAiOiA0MTAyNDQ0ODAwLCAiZ3JvdXBzIjogWyJzdGFmZiIsICJwcm9maWxlcnMiXSwgIm9yZyI6ICJzaG9" \
	"wIn0.Dvc_wnGJcmDcTL4rex9KlAOk1sb1eYnIHcR5hGyqv7-JI67iJ1Oc53JaEKmf67EGzCilPYaI9x0fH1s" \
	"oGb4l83UJ3ksb1XVZioqjMWsIfxWrOcBd09VhkasVtbQFl42tW2dLHxGVomFws5d0EYfQoW-8sLIJRSpcDtx" \
	"sgfHgFV3D8GjWh_hdO31A4FzhfPDYSESchjV1kTC4NJEoU6UElBvEIoIR3R2NqP1kald2T9S68wwA91PxL9U" \
	"WfWwbgPkqGfK_rvMT-4cad6shpa9fepny6EGOEYETuq2WD1ijbr9p7S1FXgej389lcuq68v1w0JP0hAGzGfS" \
	"_qH01qHzxew"
#define JWT_SWAPPED \
	"eyJhbGciOiAiRVMyNTYiLCAidHlwIjogIkpXVCIsICJraWQiOiAiciIsICJyZWFsbHkiOiAiUlMyNTYifQ.e" \
	"yJpc3MiOiAiaHR0cHM6Ly9pc3N1ZXIuZXhhbXBsZSIsICJhdWQiOiBbIm90aGVyIiwgImZpcm4iXSwgInN1Y" \
	"iI6ICJhbGljZSIsICJleHAiOiA0MTAyNDQ0ODAwLCAiZ3JvdXBzIjogWyJzdGFmZiIsICJwcm9maWxlcnMiX" \
	"SwgIm9yZyI6ICJzaG9wIn0.qS9RNqXXkiCTB8Lrw8VO-mMZh16bVbaw0ROFn4lwIii2881ZOsEyeYd5xHj77" \
	"cpjp1r3UV7yPMQNnJmaXORZhhqHtayh2w-BEhKY58ln0fkf2rUUoMgxFDzp-cdWVSU1w7gJAW1O4vdxheUCC" \
	"_XNUgUP9LZ2tHBq-vv4CRjlL0YVjCvhSOl6jjlp63jwwNlEdgMDMHcQ17yhB0p18yDSLKFFYjT2HM7MREAPS" \
	"ZdFNI5V8LN_I3qcZy0UnpGnQUzPjvUqbSIKvqaX5i1XkL6B9BDG9jALL3NFzrkAjLdHWni8AD3qNkDqB8QLg" \
	"64IvJNerfoBDoDX5cMREKJ2W8Mqug"
#define JWT_CRIT \
	"eyJhbGciOiAiUlMyNTYiLCAidHlwIjogIkpXVCIsICJraWQiOiAiciIsICJjcml0IjogWyJleHAiXX0.eyJp" \
	"c3MiOiAiaHR0cHM6Ly9pc3N1ZXIuZXhhbXBsZSIsICJhdWQiOiBbIm90aGVyIiwgImZpcm4iXSwgInN1YiI6" \
	"ICJhbGljZSIsICJleHAiOiA0MTAyNDQ0ODAwLCAiZ3JvdXBzIjogWyJzdGFmZiIsICJwcm9maWxlcnMiXSwg" \
	"Im9yZyI6ICJzaG9wIn0.uKBaxZSfkWygIdaX9yDkm3Zi6xNbq44UKBWmCYN9JZ1cuw-0eh1DcPkj6EC4n9p6" \
	"C1TQeNS5JWePpzXwLbsWv6bumZuqjXSNiO61KoVXDsLOkXLNKvAM73fCN7TAJNCcvI0kteOeXh1zvrp5aLqo" \
	"v8HADNXpMnXwk4_y4GQ4y5aSIhG6AMoYXRccjn4czr7phHa8kFaRYxWeHkd4InnOiZuDywWDi2gpT3vcVzrw" \
	"oPX4TeMbevKQcylJmE9SxlQy_paBxUT9DG2Nyio-HTzZH5kEUjRJkdgbSfnio82SiTkp8Zw18HOj5M9rJ-kO" \
	"3tTDjoBJdG1NPuNSafxBSa9sOg"
#define JWT_EXPIRED \
	"eyJhbGciOiAiUlMyNTYiLCAidHlwIjogIkpXVCIsICJraWQiOiAiciJ9.eyJpc3MiOiAiaHR0cHM6Ly9pc3N" \
	"1ZXIuZXhhbXBsZSIsICJhdWQiOiBbIm90aGVyIiwgImZpcm4iXSwgInN1YiI6ICJhbGljZSIsICJleHAiOiA" \
	"xMDAwMDAwMDAwLCAiZ3JvdXBzIjogWyJzdGFmZiIsICJwcm9maWxlcnMiXSwgIm9yZyI6ICJzaG9wIn0.kUc" \
	"x3fnkC-4zpvevTkPLwizkbNZoLUI7aDawxM7a54-dm2vaEXlQxMLbpYCg-gZ3_xGMmthU6b3hBzuBKQao8dp" \
	"d6lB5ZRqHeCjVOIMIfkt8BV7CGzDb5l1-ZnZPPMWkW4KgCAUUun_fOhpT9SYRebpYEEQO0wV93fsVMU8nW0S" \
	"XF4RlAqc_nBpQoJ8hPVz6CBfRXl69-Z1GfF3ocutOdythknbynbY1nSh5UGxDelInvBXlmUFj-EtecWHMuxj" \
	"d0ZzXd7zh_vY9brm9gSXh8mrqvX8J7yg3nxeLuCuGukOoPBBnbDAyPaeWNL4hWOhzBahKPAe9LRcbUX3D3QA" \
	"uNA"
#define JWT_EARLY \
	"eyJhbGciOiAiUlMyNTYiLCAidHlwIjogIkpXVCIsICJraWQiOiAiciJ9.eyJpc3MiOiAiaHR0cHM6Ly9pc3N" \
	"1ZXIuZXhhbXBsZSIsICJhdWQiOiBbIm90aGVyIiwgImZpcm4iXSwgInN1YiI6ICJhbGljZSIsICJleHAiOiA" \
	"0MTAyNDQ0ODAwLCAiZ3JvdXBzIjogWyJzdGFmZiIsICJwcm9maWxlcnMiXSwgIm9yZyI6ICJzaG9wIiwgIm5" \
	"iZiI6IDQxMDI0NDQ4MDB9.cutueiY0SIQspmY0BcbyoZZ4i-NivRg-enVzo02szJBbak8XhomSsGunTUqb3n" \
	"o8w1l7XswFNg0qgAJGsGgRfjsSLSfUBX6kXycy3CQyzVZisJw8kAVfGTNlS4RHb_vcSvCg4BulGhHtTTDxHm" \
	"XoArEw9SzD_kOeddR0sYUa-9KLVcn3p38SwIL06fRK0rwVShFnJUWmoQJSKF4-HY1PLjHbcP3Tz_YKPnH5HG" \
	"whCVfUMYcr0qbjA-CQPlqI2DME57WUBUvP7-qU3YS-wDUbi7SDKbyGaWbxmT8FnBGH7b9B4GXlHKGJ-yOhws" \
	"DcmzcWvvWedNPOHscNJGLDHihEjw"
#define JWT_NO_EXP \
	"eyJhbGciOiAiUlMyNTYiLCAidHlwIjogIkpXVCIsICJraWQiOiAiciJ9.eyJpc3MiOiAiaHR0cHM6Ly9pc3N" \
	"1ZXIuZXhhbXBsZSIsICJhdWQiOiBbIm90aGVyIiwgImZpcm4iXSwgInN1YiI6ICJhbGljZSIsICJncm91cHM" \
	"iOiBbInN0YWZmIiwgInByb2ZpbGVycyJdLCAib3JnIjogInNob3AifQ.UU_MArmdlVkCLVw9n50DRlOovXh3" \
	"5nuoTCZCaHo12RN2ymCKjAToFJq163szZ0UW8xEcBfJ_cY1RpYnNLYfLapwVPhhD4e0h3BkgzYP9ijy1qnyv" \
	"VxcGHZI47FJI4H_ZifI4KhRV9J3VXB449en2RyqjWg2ysJ6wfaDOnCexujhwAfg-2g35qohB4XnzAxg3nQCy" \
	"28VMIS1z5Y4kYnVHPzsRofYBiahvONv7tvZ7vMGmtKz-S3jI1g6m8Xr0FyesCVBvkBjB5vj1DPGQcOT_VcF9" \
	"khurPTCKVOe90ZkHbC3BaOjkoGv7k4lLGPjfUU_q8qkMH4zV0R7qb8IMwOLtKQ"
#define JWT_EXP_TEXT \
	"eyJhbGciOiAiUlMyNTYiLCAidHlwIjogIkpXVCIsICJraWQiOiAiciJ9.eyJpc3MiOiAiaHR0cHM6Ly9pc3N" \
	"1ZXIuZXhhbXBsZSIsICJhdWQiOiBbIm90aGVyIiwgImZpcm4iXSwgInN1YiI6ICJhbGljZSIsICJleHAiOiA" \
	"iNDEwMjQ0NDgwMCIsICJncm91cHMiOiBbInN0YWZmIiwgInByb2ZpbGVycyJdLCAib3JnIjogInNob3AifQ." \
	"Etp6hGuFzW0rsPq5LWqAda_Eh4EiQ5kMmrcMDc7E9pRVeVFPLBb67wIObxyOGSQaOwA_P3QxVb6FpnVfvKJp" \
	"VaE0hW32sl12j6I3TEq5Ek8BQ_Xg9QLK9_3TpYIFKid7cncZQZE_TzHeLS2pWvnjGDu9VuldShlOmzgwdsXn" \
	"qjrmuilK8sncyiBTiO1OvgtorprzlHWTJ2HgKTEaNbUjbAMKM4qYmMk1ct3ORKAFHmO7Mnva_fV48lHtgDsp" \
	"urQhi_cyTz82sQpojMW2z62Tg6Ng4qyQAt-0mLeNKkKFrTEhWdqkzsOJSgJjD7wdZnOYsLK_2W2f2iM1Cs9j" \
	"aiyOCg"
#define JWT_ISSUER \
	"eyJhbGciOiAiUlMyNTYiLCAidHlwIjogIkpXVCIsICJraWQiOiAiciJ9.eyJpc3MiOiAiaHR0cHM6Ly9vdGh" \
	"lci5leGFtcGxlIiwgImF1ZCI6IFsib3RoZXIiLCAiZmlybiJdLCAic3ViIjogImFsaWNlIiwgImV4cCI6IDQ" \
	"xMDI0NDQ4MDAsICJncm91cHMiOiBbInN0YWZmIiwgInByb2ZpbGVycyJdLCAib3JnIjogInNob3AifQ.Kg8x" \
	"8-4_Goi2XzJM1MO3jFTtKkvxefvUlDawYrTT-60aEDe_JKEEm8oe7LtJXNLd9v1cDGcNkGn1O7GqcP15b_Rv" \
	"zthvbmVJKJghSkLvKtDHxmX41097U8YQsjW7a_H6XJU9ezSvHNHQ1-6niZNM6zB_m_0Oaym7uz5TmF7Cgzgh" \
	"4L2rSWxZqopwtx7e5wzGcBO7tBG1c-bB1Rx4djLS62OPGG2mJSgZWGIdHg_wx9fTbPfRoacnmArPZTT4zFeh" \
	"r65g0_7h-XhfJ7hDZ4a2i8AcN3IQloE-WqfbM2_Fbic1QUbNSXEFOeGJ-mBOU4LVAGcXQnIDilmAsUBEiEu_" \
	"5Q"
#define JWT_AUDIENCE \
	"eyJhbGciOiAiUlMyNTYiLCAidHlwIjogIkpXVCIsICJraWQiOiAiciJ9.eyJpc3MiOiAiaHR0cHM6Ly9pc3N" \
	"1ZXIuZXhhbXBsZSIsICJhdWQiOiAib3RoZXIiLCAic3ViIjogImFsaWNlIiwgImV4cCI6IDQxMDI0NDQ4MDA" \
	"sICJncm91cHMiOiBbInN0YWZmIiwgInByb2ZpbGVycyJdLCAib3JnIjogInNob3AifQ.Y9wp4OI6w6S3Oi05" \
	"_l85g0AnkDBIrAo6HnOCs8DRZlsvUY0HmglWGWBk1Os1UbSNL9dnMoQzXTdUuviSCVW4UZEpBaq3ChesSfn8" \
	"AhoPK7M2t9R3jhgZwtM_3YTo6fYxhpIkqtMgrght5JyIdd7aJiOzwIBMMYpsuAVpkxHkRGvhdRxHs3k8_-J_" \
	"k4oXAShXLWmy-5y63u-QzzyQJ_DLhozs7FqnJFWbn_1qMqy6U3ZY80x6ftpGIWz12jplTK8KczdbpG80bGoE" \
	"229dKpaSg6b1TvXv55z3ZB9xzUvvgWVFMRybJ2mQH0ywR3JAv0bHU0TZaUzTmdLxy8kjSEAnlw"
#define JWT_NO_AUD \
	"eyJhbGciOiAiUlMyNTYiLCAidHlwIjogIkpXVCIsICJraWQiOiAiciJ9.eyJpc3MiOiAiaHR0cHM6Ly9pc3N" \
	"1ZXIuZXhhbXBsZSIsICJzdWIiOiAiYWxpY2UiLCAiZXhwIjogNDEwMjQ0NDgwMCwgImdyb3VwcyI6IFsic3R" \
	"hZmYiLCAicHJvZmlsZXJzIl0sICJvcmciOiAic2hvcCJ9.im5qdiat4Sg588Wpi82bTsk67TJ6S9shchcAiE" \
	"wZ15yacVuZ8IG-utsESmPJZZnJA9UbDEGrCYC-IUqlSBdfJbk71cDSqCy0LkBeEPHcIUzgDfkPHQcyfa2Y0Y" \
	"k4oNJydyjGOQEyNfmQ7L7ZQtK8GW80IzKHam4nrgB1oxfonO0ZtEkgAOalVD6_wuYOtkCdukCphfZnWlaWIS" \
	"U-kC1NFWyAx2PXK8_Syl4sWNXGp2Ev2mpGoOJnqY3lPd2Sqj8cWpuYPvP5CQhMQkBuYuGJ7XYg4j1qs-qFai" \
	"96uZWu-Oua-fo2TqdG35cTzmGUufemCdSwe6G72OZAA0sBZE1phg"
#define JWT_NO_ORG \
	"eyJhbGciOiAiUlMyNTYiLCAidHlwIjogIkpXVCIsICJraWQiOiAiciJ9.eyJpc3MiOiAiaHR0cHM6Ly9pc3N" \
	"1ZXIuZXhhbXBsZSIsICJhdWQiOiBbIm90aGVyIiwgImZpcm4iXSwgInN1YiI6ICJhbGljZSIsICJleHAiOiA" \
	"0MTAyNDQ0ODAwLCAiZ3JvdXBzIjogWyJzdGFmZiIsICJwcm9maWxlcnMiXX0.NxHHmDGjoR7MdPDpjEcaRPI" \
	"F2pyEHa09AsDBjrAaK5LdCFqiqcnA805DyKbU7cmQBilDnQdXAk73nFbdS8aa1bYYM51zLVig6tOSNrafS9x" \
	"NWBvC-D_9461nAeLDHUCphS_D_R5X0Q-5lPiGkk4mPTGYuJ5sSmype5KUoad4yW2ERGLqU1by0KLd38ivSdR" \
	"aLo-3REOJOvIOkhCftzbKV0h6UQlxN5F0YqTArLnAUNKzxZeVCNc7fxXAMHeJ39C6dPTBMw-K7-1MOXy-zhv" \
	"b-66vbo5uu8K-A9xpE35MnaMlfAafQNbrzK8330LDdpwqibH9aNbjue3ZCsqa9LiJPg"
#define JWT_SCOPE \
	"eyJhbGciOiAiRVMyNTYiLCAidHlwIjogIkpXVCIsICJraWQiOiAiZSJ9.eyJpc3MiOiAiaHR0cHM6Ly9pc3N" \
	"1ZXIuZXhhbXBsZSIsICJhdWQiOiBbIm90aGVyIiwgImZpcm4iXSwgInN1YiI6ICJhbGljZSIsICJleHAiOiA" \
	"0MTAyNDQ0ODAwLCAib3JnIjogInNob3AiLCAic2NvcGUiOiAib3BlbmlkIHByb2ZpbGVycyJ9.as8txqppGA" \
	"E7Bt98KFewsggpW6H94Y_0pOLIYVl-K5DQ0H3lX32yTIQIOrVvzrX6flqo_gNRJ-jmPunaziHhWw"
/* clang-format on */
